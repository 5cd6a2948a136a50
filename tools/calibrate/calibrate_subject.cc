// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/calibrate_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "calib/run/plan.h"
#include "calib/run/provenance.h"
#include "capture/files/atomic_file.h"
#include "capture/files/mapped_file.h"
#include "capture/files/temporary_directory.h"
#include "capture/model/run/device.h"
#include "linalg/base/error.h"
#include "tools/calibrate/cache_type_plan.h"
#include "tools/calibrate/calibrate_plan.h"
#include "tools/cli/output_path.h"
#include "tools/input/job_options.h"

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
  DataArguments data = options.data;
  if (data.tokens == 0) data.tokens = DefaultTokens(options.model.device);
  SelfGeneration model = PrepareSelfGeneration(options.self, data, opened, device, dtype);
  model.read = options.read;
  return model;
}

uint64_t OwnTextLimit(const CalibrateOptions& options, const SelfGeneration& model) {
  return SelfGenerationLimit(model.device, DeviceLimit(options, model.device));
}

// The documents that a process runs: all, or its share if there are `count` ranks or shards. `own`:
// the index of its share; if absent, the share with the most tokens.
struct Documents {
  int count = 1;  // number of ranks or shards
  std::optional<size_t> own = {};
  bool shard = false;
  RankGroup* group = &OneRank();  // the group of a rank
};

CalibrationInput InputOf(const CalibrateOptions& options, const ModelInput& opened,
                         const Documents& documents, LoopOptions loop, const RunOptions& run) {
  const auto [device, dtype] = MachineOf(options, opened);
  std::vector<std::vector<int32_t>> sequences = opened.Sequences();
  CalibrationInput input{
      .device = device, .dtype = dtype, .options = options.calibration, .run = run};
  input.counted = opened.data.counted();
  input.domains = opened.data.domains();
  JobRanks& ranks = input.ranks;
  ranks = {.group = documents.group, .apart = documents.shard};
  for (const auto& sequence : sequences) ranks.lengths.push_back(std::ssize(sequence));
  ranks.shares =
      ShareOut(opened.spec, ranks.lengths, loop.token_chunk, documents.count, ranks.apart);
  const auto largest = std::ranges::max_element(ranks.shares, {}, &RankShare::num_tokens);
  ranks.number = documents.own.value_or(static_cast<size_t>(largest - ranks.shares.begin()));
  loop.tokens_before = ranks.own().first_token;
  loop.tokens_of_all = input.num_tokens();
  const auto first = sequences.begin() + static_cast<std::ptrdiff_t>(ranks.own().first_sequence);
  sequences = {first, first + static_cast<std::ptrdiff_t>(ranks.own().num_sequences)};
  loop.read = options.read;
  loop.ranks = documents.group;
  input.source = std::make_shared<ModelSource>(opened.checkpoint, opened.spec, std::move(sequences),
                                               device, dtype, loop);
  return input;
}

// Returns the input of the process with the most tokens. All processes must use the chunk sizes
// that fit into memory for this one.
CalibrationInput LargestOf(const CalibrateOptions& options, const ModelInput& opened,
                           Documents documents, uint64_t limit) {
  documents.own.reset();
  return FitIntoMemory(limit, [&](const LoopOptions& loop, const RunOptions& run) {
    return InputOf(options, opened, documents, loop, run);
  });
}

// Returns the input of a model that shards have run, with the chunk sizes that the shards used.
CalibrationInput InputOfShards(const CalibrateOptions& options, const ModelInput& opened,
                               const std::shared_ptr<const ShardSet>& shards, uint64_t limit) {
  return FitIntoMemory(limit, [&](LoopOptions loop, const RunOptions& run) {
    loop.token_chunk = shards->token_chunk();
    loop.query_chunk = shards->query_chunk();
    CalibrationInput input = InputOf(options, opened, {}, loop, run);
    input.source = std::make_shared<ShardSource>(input.source, shards);
    return input;
  });
}

}  // namespace

std::vector<RankPlan> PlanAllRanks(const CalibrateOptions& options,
                                   const std::shared_ptr<const ModelInput>& opened,
                                   const CalibrationInput& whole, const CalibrationPlan& one) {
  const int ranks = RanksAskedFor(options.ranks, options.model.device);
  if (ranks == 1) {
    if (options.ranks.nodes > 1)
      throw UsageError("--nodes plans several ranks; also give --ranks N");
    return {};
  }
  CheckRanks(options, ranks);
  if (options.ranks.nodes > ranks)
    throw UsageError(
        fmt::format("--nodes {}: every node needs at least one rank, but --ranks is {}",
                    options.ranks.nodes, ranks));
  const uint64_t limit = DeviceLimit(options, MachineOf(options, *opened).device);
  std::vector<RankPlan> plans = {{.most_tokens = whole.num_tokens(),
                                  .read_per_node = one.bytes_read,
                                  .peak_device = one.peak_device,
                                  .peak_host = one.peak_host,
                                  .seconds = one.seconds,
                                  .efficiency = 1}};
  const int nodes = static_cast<int>(options.ranks.nodes), of_a_node = (ranks + nodes - 1) / nodes;
  for (int count = 2;; count = std::min(2 * count, ranks)) {
    plans.push_back(PlanRanks(LargestOf(options, *opened, {.count = count}, limit), whole, one,
                              (count + of_a_node - 1) / of_a_node));
    if (count == ranks) return plans;
  }
}

Subject OfModel(const CalibrateOptions& options, const std::shared_ptr<const ModelInput>& opened,
                RankGroup& group, const ShardSet& merged) {
  const uint64_t limit =
      LeastOfRanks(group, "memory", DeviceLimit(options, MachineOf(options, *opened).device));
  const auto shards = std::make_shared<const ShardSet>(merged);
  CalibrationInput input;
  if (!shards->shares().empty()) {
    input = InputOfShards(options, *opened, shards, limit);
  } else {
    const ShardPlace shard = ShardOf(options).value_or(ShardPlace{group.rank() + 1, group.size()});
    const Documents documents{.count = shard.count,
                              .own = static_cast<size_t>(shard.number - 1),
                              .shard = !options.shard.empty(),
                              .group = &group};
    input = LargestOf(options, *opened, documents, limit);
    input = InputOf(options, *opened, documents, input.model()->loop().options(), input.run);
  }
  CheckCacheTypes(options.types, input);
  const Checkpoint& checkpoint = opened->checkpoint;
  return {
      .input = std::move(input),
      .data = DescribeData(opened->data),
      .fingerprint = [=] { return FingerprintModel(opened->location, opened->checkpoint); },
      .describe = [=] { return DescribeModel(opened->location, opened->spec, opened->checkpoint); },
      .identities =
          [opened, &checkpoint] {
            return FileIdentities(checkpoint.directory(), checkpoint.files());
          },
      .opened_files =
          [opened, &checkpoint] { return OpenedFiles(checkpoint.directory(), checkpoint.files()); },
      .turns = checkpoint.turns(),
      .shards = shards};
}

Subject OfDump(const CalibrateOptions& options, Log& log) {
  const std::shared_ptr<const AttentionDump> dump = OpenDump(options.dump, log);
  if (!dump->layers().front().facts && options.calibration.automatic.context > 0) {
    throw UsageError(fmt::format(
        "--context: {} does not store the rotary embedding of the keys (rope); give an HDF5 dump",
        dump->name()));
  }
  const fs::path path = fs::path(options.dump.from).lexically_normal();
  const at::Device device = ParseDevice(options.model.device);
  // By default computes in the type in which the model ran, so that a fit to the dump equals a fit
  // to the model.
  const DType stored = dump->layers().front().dtype;
  const at::ScalarType dtype = options.model.dtype == "auto"
                                   ? ToScalarType(stored, dump->name())
                                   : ParseComputeDType(options.model.dtype, stored, device);
  const auto make = [&](const LoopOptions&, const RunOptions& run) {
    return CalibrationInput{.source = std::make_shared<DumpSource>(dump, device, dtype),
                            .device = device,
                            .dtype = dtype,
                            .options = options.calibration,
                            .run = run,
                            .counted = DumpData(*dump).counted(),
                            .domains = {dump->domains().begin(), dump->domains().end()}};
  };
  return {.input = FitIntoMemory(DeviceLimit(options, device), make),
          .data = DescribeDumpData(*dump),
          .fingerprint = [=] { return FingerprintDump(path, *dump); },
          .describe = [=] { return DescribeDump(path, *dump); },
          .identities = [=] { return DumpIdentities(path); }};
}

void CheckArguments(const CalibrateOptions& options) {
  if (options.dump.from.empty() && options.model.model.empty())
    throw UsageError(
        "no MODEL given; expected a directory, a .gguf file, or ORG/NAME in the local Hugging Face "
        "cache");
  CheckOptions(options.calibration);
  if (!ParseDevice(options.model.device).is_cpu()) return;
  if (options.max_vram > 0) throw UsageError("--max-vram has no effect on a CPU");
  if (options.read != ReadMode::kAuto) throw UsageError("--read has no effect on a CPU");
}

void CheckRanks(const CalibrateOptions& options, int ranks) {
  const char* const alone = !options.dump.from.empty() ? "--from"
                            : !options.shard.empty()   ? "--shard"
                            : !options.merge.empty()   ? "--merge"
                            : options.show_samples > 0 ? "--show-samples"
                                                       : nullptr;
  if (alone != nullptr && ranks > 1)
    throw UsageError(fmt::format("{} runs on one rank, but {} were started", alone, ranks));
}

std::optional<ShardPlace> ShardOf(const CalibrateOptions& options) {
  if (options.shard.empty()) return std::nullopt;
  ShardPlace place;
  const char* const end = options.shard.data() + options.shard.size();
  auto read = std::from_chars(options.shard.data(), end, place.number);
  const bool divided = read.ec == std::errc() && read.ptr != end && *read.ptr == '/';
  if (divided) read = std::from_chars(read.ptr + 1, end, place.count);
  if (!divided || read.ec != std::errc() || read.ptr != end || !place.Exists()) {
    throw UsageError(fmt::format("--shard '{}': expected I/N with I from 1 to N and N at most {}",
                                 options.shard, kMostShards));
  }
  return place;
}

bool MergesArtifacts(const CalibrateOptions& options) {
  return !options.merge.empty() && std::ranges::none_of(options.merge, ShardSet::LooksLikeOne);
}

ShardSet ShardsToMerge(const CalibrateOptions& options) {
  if (options.merge.empty()) return {};
  return ShardSet::Open({options.merge.begin(), options.merge.end()});
}

Places PlacesOf(const CalibrateOptions& options) {
  Places places;
  places.output =
      options.output.empty() ? fs::path(NameOf(options) + "-oscar") : fs::path(options.output);
  if (const std::optional<ShardPlace> shard = ShardOf(options)) {
    places.output += fmt::format(".shard-{}-of-{}", shard->number, shard->count);
  }
  places.job = places.output.string() + ".job";
  if (!fs::exists(places.job) && !ShardSet::LooksLikeOne(places.output))
    CheckNewOutput(places.output, /*makes_folders=*/true);
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
  CheckRoom(PlacesOf(options).output, PlanCalibration(input), "the run");
}

OwnText WriteOwnText(const CalibrateOptions& options, RankGroup& group, CommandContext& context,
                     ModelInput& opened) {
  if (options.self.tokens == 0) return {};
  constexpr int kTag = 1 << 24;  // not the tag of any layer
  const SelfGeneration model = OwnTextOf(options, opened);
  if (group.rank() != 0) {
    const TemporaryDirectory directory("words");
    WriteFileAtomically(directory.path() / kSelfGeneratedFile, group.ReceiveBytes(0, kTag));
    SelfGenerate(model, directory.path(), OwnTextLimit(options, model), context, &opened);
    return {};
  }
  JobLock lock(PlacesOf(options).job);
  if (options.restart) lock.DiscardJob();
  RememberOptions(lock.path(), context.config);
  SelfGenerate(model, lock.path(), OwnTextLimit(options, model), context, &opened);
  for (int rank = 1; rank < group.size(); ++rank) {
    const MappedFile file = MappedFile::Open(lock.path() / kSelfGeneratedFile);
    const auto* bytes = reinterpret_cast<const char*>(file.bytes().data());
    group.SendBytes({bytes, file.bytes().size()}, rank, kTag);
  }
  return {"", std::move(lock)};
}

}  // namespace oscar
