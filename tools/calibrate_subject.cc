// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calib/run/plan.h"
#include "calib/run/provenance.h"
#include "capture/files/atomic_file.h"
#include "capture/files/mapped_file.h"
#include "capture/files/temporary_directory.h"
#include "capture/model/device.h"
#include "linalg/error.h"
#include "tools/cache_type_plan.h"
#include "tools/calibrate_plan.h"
#include "tools/cli/output_path.h"
#include "tools/job_options.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

uint64_t DeviceLimit(const CalibrateOptions& options, at::Device device) {
  if (device.is_cpu()) return 0;
  if (options.max_vram > 0) return static_cast<uint64_t>(options.max_vram * 1e9);
  return QueryMemory(device).free;
}

struct Machine {
  at::Device device;
  at::ScalarType dtype;
};
Machine MachineOf(const CalibrateOptions& options, const ModelInput& opened) {
  const at::Device device = ParseDevice(options.model.device);
  return {device, ParseComputeDType(options.model.dtype,
                                    StoredDType(opened.spec, opened.checkpoint), device)};
}

std::string NameOf(const CalibrateOptions& options) {
  if (options.dump.from.empty())
    return fs::path(ResolveModel(options.model.model).id).filename().string();
  const fs::path path = fs::path(options.dump.from).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).stem().string();
}

SelfGeneration OwnTextOf(const CalibrateOptions& options, const ModelInput& opened) {
  const auto [device, dtype] = MachineOf(options, opened);
  SelfGeneration model = PrepareSelfGeneration(options.self, options.data, opened, device, dtype);
  model.read = options.read;
  return model;
}

uint64_t OwnTextLimit(const CalibrateOptions& options, const SelfGeneration& model) {
  return SelfGenerationLimit(model.device, DeviceLimit(options, model.device));
}

}  // namespace

namespace {

// What one of some ranks runs of a model and its data, all of it where there is one rank; `rank`:
// -1 the one with the most tokens.
CalibrationInput InputOf(const CalibrateOptions& options, const ModelInput& opened, int rank,
                         int ranks, RankGroup* group, LoopOptions loop, const RunOptions& run) {
  const auto [device, dtype] = MachineOf(options, opened);
  std::vector<std::vector<int32_t>> sequences = opened.Sequences();
  CalibrationInput input{
      .device = device, .dtype = dtype, .options = options.calibration, .run = run};
  if (ranks > 1) {
    input.ranks.group = group;
    for (const auto& sequence : sequences) input.ranks.lengths.push_back(std::ssize(sequence));
    input.ranks.shares = ShareOut(opened.spec, input.ranks.lengths, loop.token_chunk, ranks);
    const std::vector<RankShare>& shares = input.ranks.shares;
    const RankShare& share = rank < 0
                                 ? *std::ranges::max_element(shares, {}, &RankShare::num_tokens)
                                 : shares[static_cast<size_t>(rank)];
    const auto first = sequences.begin() + static_cast<std::ptrdiff_t>(share.first_sequence);
    sequences = {first, first + static_cast<std::ptrdiff_t>(share.num_sequences)};
  }
  loop.read = options.read;
  loop.ranks = group;
  input.source = std::make_shared<ModelSource>(opened.checkpoint, opened.spec, std::move(sequences),
                                               device, dtype, loop);
  return input;
}

// Of the rank with the most tokens of `ranks`, for a plan alone.
CalibrationInput LargestOfRanks(const CalibrateOptions& options,
                                const std::shared_ptr<const ModelInput>& opened, int ranks) {
  const at::Device device = MachineOf(options, *opened).device;
  return FitIntoMemory(DeviceLimit(options, device),
                       [&](const LoopOptions& loop, const RunOptions& run) {
                         return InputOf(options, *opened, -1, ranks, nullptr, loop, run);
                       });
}

}  // namespace

std::vector<RankPlan> PlanAllRanks(const CalibrateOptions& options,
                                   const std::shared_ptr<const ModelInput>& opened,
                                   const CalibrationInput& whole, const CalibrationPlan& one) {
  const int ranks = RanksAskedFor(options.ranks, options.model.device);
  if (ranks == 1) {
    if (options.ranks.nodes > 1)
      throw UsageError("--nodes is of a plan for several ranks: give --ranks N with it");
    return {};
  }
  CheckRanks(options, ranks);
  if (options.ranks.nodes > ranks)
    throw UsageError(fmt::format("--nodes {}: each runs a rank at least, and --ranks is {}",
                                 options.ranks.nodes, ranks));
  return PlansOfRanks([&](int count) { return LargestOfRanks(options, opened, count); }, whole, one,
                      ranks, static_cast<int>(options.ranks.nodes));
}

Subject OfModel(const CalibrateOptions& options, const std::shared_ptr<const ModelInput>& opened,
                RankGroup* group) {
  const int ranks = group == nullptr ? 1 : group->size();
  uint64_t limit = DeviceLimit(options, MachineOf(options, *opened).device);
  if (group != nullptr) limit = LeastOfRanks(*group, "memory", limit);
  // All ranks run as the one with the most tokens must.
  CalibrationInput input =
      FitIntoMemory(limit, [&](const LoopOptions& loop, const RunOptions& run) {
        return InputOf(options, *opened, -1, ranks, group, loop, run);
      });
  if (group != nullptr) {
    input = InputOf(options, *opened, group->rank(), ranks, group, input.model()->loop().options(),
                    input.run);
  }
  CheckCacheTypes(options.types, input);
  return {
      .input = std::move(input),
      .data = DescribeData(opened->data),
      .fingerprint = [=] { return FingerprintModel(opened->location, opened->checkpoint); },
      .describe = [=] { return DescribeModel(opened->location, opened->spec, opened->checkpoint); },
      .turns = opened->checkpoint.turns()};
}

Subject OfDump(const CalibrateOptions& options, Log& log) {
  const std::shared_ptr<const AttentionDump> dump = OpenDump(options.dump, log);
  if (!dump->layers().front().facts && options.calibration.automatic.context > 0) {
    throw UsageError(fmt::format(
        "--context: {} does not say how keys turn with position (rope); give an HDF5 dump",
        dump->name()));
  }
  const fs::path path = fs::path(options.dump.from).lexically_normal();
  const at::Device device = ParseDevice(options.model.device);
  // As the model ran, so that the fit is that of the model.
  const DType stored = dump->layers().front().dtype;
  const at::ScalarType dtype = options.model.dtype == "auto"
                                   ? ToScalarType(stored, dump->name())
                                   : ParseComputeDType(options.model.dtype, stored, device);
  const auto make = [&](const LoopOptions&, const RunOptions& run) {
    return CalibrationInput{.source = std::make_shared<DumpSource>(dump, device, dtype),
                            .device = device,
                            .dtype = dtype,
                            .options = options.calibration,
                            .run = run};
  };
  return {.input = FitIntoMemory(DeviceLimit(options, device), make),
          .data = DescribeDumpData(*dump),
          .fingerprint = [=] { return FingerprintDump(path, *dump); },
          .describe = [=] { return DescribeDump(path, *dump); }};
}

void CheckArguments(const CalibrateOptions& options) {
  if (options.dump.from.empty() && options.model.model.empty())
    throw UsageError("no MODEL given: a directory, or ORG/NAME in the local Hugging Face cache");
  CheckOptions(options.calibration);
  if (!ParseDevice(options.model.device).is_cpu()) return;
  if (options.max_vram > 0) throw UsageError("--max-vram has no effect on a CPU");
  if (options.read != ReadMode::kAuto) throw UsageError("--read has no effect on a CPU");
}

void CheckRanks(const CalibrateOptions& options, int ranks) {
  const char* const alone = !options.dump.from.empty() ? "--from"
                            : options.show_samples > 0 ? "--show-samples"
                                                       : nullptr;
  if (alone != nullptr)
    throw UsageError(fmt::format("{} is for one rank, and {} were started", alone, ranks));
}

Places PlacesOf(const CalibrateOptions& options) {
  Places places;
  places.output =
      options.output.empty() ? fs::path(NameOf(options) + "-oscar") : fs::path(options.output);
  places.job = places.output.string() + ".job";
  if (!fs::exists(places.job)) CheckNewOutput(places.output, /*makes_folders=*/true);
  return places;
}

void RemoveStaging(const fs::path& output) {
  const fs::path parent = output.has_parent_path() ? output.parent_path() : fs::path(".");
  const std::string prefix = output.filename().string() + ".tmp-";
  if (!fs::exists(parent)) return;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (entry.path().filename().string().starts_with(prefix)) fs::remove_all(entry.path());
  }
}

ModelInput OpenForCalibration(const CalibrateOptions& options, Log& log, bool planning) {
  DataArguments data = options.data;
  data.chat_for_prompts = options.self.tokens > 0;
  return OpenModelInput(options.model, data, log, planning);
}

OwnText PlanOwnText(const CalibrateOptions& options, ModelInput& opened) {
  if (options.self.tokens == 0) return {};
  const SelfGeneration model = OwnTextOf(options, opened);
  return {PlanSelfGenerate(model, OwnTextLimit(options, model), &opened), std::nullopt};
}

std::string PrognosisOfOwnText(const CalibrateOptions& options, ModelInput& opened) {
  if (options.self.tokens > 0) return PlanOwnText(options, opened).plan;
  const auto [device, dtype] = MachineOf(options, opened);
  return SelfGenerationFact(opened.spec, dtype,
                            SelfGenerationLimit(device, DeviceLimit(options, device)));
}

void CheckCalibrationOfOwnText(const CalibrateOptions& options,
                               const std::shared_ptr<ModelInput>& opened) {
  if (options.self.tokens == 0) return;
  const DataSet prompts = opened->data;
  PlanOwnText(options, *opened);
  const CalibrationInput input = OfModel(options, opened).input;
  opened->data = prompts;
  CheckCalibration(input);
  CheckSpace(PlacesOf(options).output, PlanCalibration(input).disk_while_running, "the run");
}

OwnText WriteOwnText(const CalibrateOptions& options, RankGroup* group, CommandContext& context,
                     ModelInput& opened) {
  if (options.self.tokens == 0) return {};
  constexpr int kTag = 1 << 24;  // no layer's
  const SelfGeneration model = OwnTextOf(options, opened);
  if (group != nullptr && group->rank() != 0) {
    const TemporaryDirectory directory("words");
    WriteFileAtomically(directory.path() / kSelfGeneratedFile, group->ReceiveBytes(0, kTag));
    SelfGenerate(model, directory.path(), OwnTextLimit(options, model), context, &opened);
    return {};
  }
  JobLock lock(PlacesOf(options).job);
  if (options.restart) lock.DiscardJob();
  RememberOptions(lock.path(), context.config);
  SelfGenerate(model, lock.path(), OwnTextLimit(options, model), context, &opened);
  for (int rank = 1; group != nullptr && rank < group->size(); ++rank) {
    const MappedFile file = MappedFile::Open(lock.path() / kSelfGeneratedFile);
    const auto* bytes = reinterpret_cast<const char*>(file.bytes().data());
    group->SendBytes({bytes, file.bytes().size()}, rank, kTag);
  }
  return {"", std::move(lock)};
}

}  // namespace oscar
