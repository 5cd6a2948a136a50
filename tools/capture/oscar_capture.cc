// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-capture: runs a model on text and writes attention's inputs, for inspection and fitting.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <numeric>

#include "calib/run/calibrate.h"
#include "calib/run/provenance.h"
#include "calib/run/rank_share.h"
#include "capture/dump/dump_format.h"
#include "capture/dump/dump_reader.h"
#include "capture/files/digest.h"
#include "capture/model/run/device.h"
#include "capture/model/run/dump_observer.h"
#include "export/formats/upstream_dump.h"
#include "linalg/base/error.h"
#include "tools/capture/capture_options.h"
#include "tools/cli/build_info.h"
#include "tools/cli/command.h"
#include "tools/cli/output_path.h"
#include "tools/input/forward_proof.h"
#include "tools/input/rank_job.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Clock = std::chrono::steady_clock;

// Limit for --scores all. A larger size means that the user overlooked the quadratic growth.
constexpr int64_t kMaxAllScoreBytes = int64_t{16} << 30;

std::string Gigabytes(int64_t bytes) {
  return bytes < 1000000000 ? fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6)
                            : fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

std::string_view ScoresOf(const CaptureOptions& options) {
  if (options.scores) return *options.scores;
  return options.format == CaptureFormat::kHdf5 ? "rows" : "none";
}

// Indices of the tokens whose softmax rows are written.
std::vector<int64_t> ScoreRows(const CaptureOptions& options, const std::vector<int64_t>& lengths) {
  std::vector<int64_t> rows;
  const std::string_view scores = ScoresOf(options);
  if (scores == "none") return rows;
  int64_t end = 0;
  for (const int64_t length : lengths) {
    end += length;
    const int64_t taken = scores == "all" ? length : std::min(length, options.score_rows);
    for (int64_t row = end - taken; row < end; ++row) rows.push_back(row);
  }
  return rows;
}

struct Sizes {  // bytes
  int64_t tensors = 0, scores = 0, logits = 0;
  int64_t total() const { return tensors + scores + logits; }
};

Sizes PlanSizes(const CaptureOptions& options, const ModelSource& source, DType dtype,
                int64_t num_score_rows) {
  using namespace dump_format;  // NOLINT(build/namespaces): size functions
  const std::vector<int64_t>& lengths = source.sequence_lengths();
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const int64_t tokens = source.num_tokens();
  Sizes sizes;
  for (const LayerSpec& spec : source.layers()) {
    const DumpLayer layer = DumpLayerOf(source.loop().spec(), spec, dtype);
    sizes.tensors += TensorBytes(layer, tokens);
    if (options.format == CaptureFormat::kUpstream) {
      CheckUpstreamHolds(layer);
      sizes.tensors -= tokens * layer.row_bytes(DumpTensor::kAttnOut);
    }
    if (num_score_rows > 0) {
      sizes.scores += LseBytes(tokens, layer.num_q_heads) +
                      ScoreBytes(num_score_rows, layer.num_q_heads, longest);
    }
  }
  if (options.logits) sizes.logits = tokens * source.loop().spec().vocab_size * 4;
  if (ScoresOf(options) == "all" && sizes.scores > kMaxAllScoreBytes) {
    throw UsageError(
        fmt::format("--scores all: {} layers with attention weights of {} tokens, each up to {} "
                    "long, take {}, but at most {} are written; give fewer --tokens, a shorter "
                    "--max-sequence, or --scores rows",
                    source.layers().size(), tokens, longest, Gigabytes(sizes.scores),
                    Gigabytes(kMaxAllScoreBytes)));
  }
  return sizes;
}

void CheckArguments(const CaptureOptions& options) {
  if (options.model.model.empty())
    throw UsageError(
        "no MODEL given; expected a directory, a .gguf file, or ORG/NAME in the local Hugging Face "
        "cache");
  if (options.output.empty()) throw UsageError("no output given; give -o DUMP.h5");
  if (options.format != CaptureFormat::kUpstream) return;
  if (ScoresOf(options) != "none" || options.logits)
    throw UsageError("--format upstream stores only q, k and v; give no --scores and no --logits");
}

// A dump in either format, with one interface. Only HDF5 can hold scores, logits and an origin.
struct Target {
  std::unique_ptr<DumpWriter> hdf5;
  std::unique_ptr<UpstreamDumpWriter> upstream;

  DumpSink& sink() const {
    return hdf5 ? static_cast<DumpSink&>(*hdf5) : static_cast<DumpSink&>(*upstream);
  }
};

Target OpenTarget(const CaptureOptions& options, const ModelSource& source,
                  std::vector<int64_t> score_rows, CountedQueries counted,
                  std::vector<int32_t> domains) {
  Target target;
  if (options.format == CaptureFormat::kUpstream) {
    if (!counted.empty()) {
      throw UsageError(
          "--format upstream cannot store which queries count (loss_mask, labels); give --format "
          "hdf5, or rows without these columns");
    }
    target.upstream =
        std::make_unique<UpstreamDumpWriter>(options.output, source.sequence_lengths());
  } else {
    target.hdf5 = std::make_unique<DumpWriter>(
        options.output, source.sequences(),
        DumpWriterOptions{.deflate_level = static_cast<int>(options.deflate),
                          .score_rows = std::move(score_rows),
                          .logits_width = options.logits ? source.loop().spec().vocab_size : 0,
                          .counted = std::move(counted),
                          .domains = std::move(domains)});
  }
  return target;
}

DumpOrigin OriginOf(const ModelInput& input, const Json& model) {
  const ModelLocation& location = input.location;
  return {.format = {},
          .model = location.revision.empty() ? location.id : location.id + "@" + location.revision,
          .model_digest = ModelDigest(model),
          .tokenizer_digest = model.contains("tokenizer")
                                  ? model.at("tokenizer").at("sha256").get<std::string>()
                                  : std::string(),
          .data_digest = input.data.digest,
          .tool_version = ThisBuild().version};
}

void RunLayers(const CaptureOptions& options, ModelSource& source, const Target& target,
               const RankGroup& group, CommandContext& context) {
  const size_t num_layers = source.layers().size();
  DumpWriter* const scores =
      target.hdf5 && !target.hdf5->options().score_rows.empty() ? target.hdf5.get() : nullptr;
  DumpObserver observer(target.sink(), scores, source.loop().dtype());
  context.progress.Begin("capturing", static_cast<int64_t>(num_layers));
  auto started = Clock::now();
  bool stopped = false;
  source.Run(0, observer, [&](size_t index) {
    const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
    const LayerSpec& layer = source.layers()[index];
    context.progress.StepDone(
        fmt::format("layer {}: {} tokens, {:.2f} s", layer.layer_id, source.num_tokens(), seconds),
        {{"layer_id", layer.layer_id}, {"tokens", source.num_tokens()}, {"seconds", seconds}});
    started = Clock::now();
    stopped = AgreeToStop(group, index, context.stop.requested()) &&
              (index + 1 < num_layers || options.logits);
    return !stopped;
  });
  context.progress.End();
  if (stopped) {
    throw Interrupted(
        fmt::format("{}: stopped; a dump is written whole or not at all, so nothing was kept and "
                    "the next run starts from the beginning",
                    options.output));
  }
}

// Returns the file next to the complete dump to which one of several ranks writes its sequences.
fs::path PartOf(const fs::path& output, int rank) {
  fs::path part = output;
  part.replace_filename(
      fmt::format("{}.rank{}{}", output.stem().string(), rank, output.extension().string()));
  return part;
}

// Writes the dump of all sequences. It only refers to the values, which stay in the ranks' files.
void WriteWhole(const CaptureOptions& options, const ModelInput& input,
                const std::vector<RankShare>& shares, const DumpOrigin& origin) {
  const std::vector<std::vector<int32_t>> sequences = input.Sequences();
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(std::ssize(sequence));
  DumpWriterOptions how{.score_rows = ScoreRows(options, lengths),
                        .logits_width = options.logits ? input.spec.vocab_size : 0,
                        .counted = input.data.counted(),
                        .domains = input.data.domains()};
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    const auto first = lengths.begin() + static_cast<std::ptrdiff_t>(shares[rank].first_sequence);
    const std::vector<int64_t> own(first,
                                   first + static_cast<std::ptrdiff_t>(shares[rank].num_sequences));
    how.parts.push_back({.file = PartOf(options.output, static_cast<int>(rank)).filename().string(),
                         .tokens = shares[rank].num_tokens,
                         .score_rows = std::ssize(ScoreRows(options, own)),
                         .longest_sequence = *std::ranges::max_element(own)});
  }
  DumpWriter writer(options.output, sequences, how);
  const DumpReader first(PartOf(options.output, 0));
  for (const DumpLayer& layer : first.layers()) {
    writer.BeginLayer(layer);
    for (const CacheReader& reader : layer.readers) writer.BeginReader(layer, reader);
  }
  writer.Commit(origin);
}

CommandResult CaptureAsRank(const CaptureOptions& given, RankGroup& group,
                            CommandContext& context) {
  CheckArguments(given);
  CaptureOptions options = given;
  if (!context.dry_run) CheckNewOutput(options.output);
  if (group.size() > 1) {
    if (options.format == CaptureFormat::kUpstream)
      throw UsageError("--format upstream runs on one rank only; start a single rank");
    options.output = PartOf(given.output, group.rank()).string();
    CheckNewOutput(options.output);
  }
  const at::Device device = ParseDevice(options.model.device);
  const auto started = Clock::now();
  const ModelInput input = OpenModelInput(options.model, options.data, context.log);
  const at::ScalarType dtype =
      ParseComputeDType(options.model.dtype, StoredDType(input.spec, input.checkpoint), device);
  LoopOptions loop = CalibrationLoopOptions();  // a fit of the dump must equal a fit of the model
  loop.show_expanded_heads = true;
  loop.need_final_hidden = options.logits;
  loop.ranks = &group;
  std::vector<std::vector<int32_t>> sequences = input.Sequences();
  CountedQueries counted = input.data.counted();
  std::vector<int32_t> domains = input.data.domains();
  CheckSameOnAllRanks(group, {{"model", FingerprintModel(input.location, input.checkpoint)},
                              {"data", input.data.digest},
                              {"options", context.config},
                              {"version", ThisBuild().version}});
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(std::ssize(sequence));
  const std::vector<RankShare> shares =
      ShareOut(input.spec, lengths, loop.token_chunk, group.size());
  const RankShare& own = shares[static_cast<size_t>(group.rank())];
  const auto keep_own = [&](auto& of_sequences) {
    if (of_sequences.empty()) return;
    const auto first = of_sequences.begin() + static_cast<std::ptrdiff_t>(own.first_sequence);
    of_sequences = {first, first + static_cast<std::ptrdiff_t>(own.num_sequences)};
  };
  keep_own(sequences);
  keep_own(counted);
  keep_own(domains);
  loop.tokens_before = own.first_token;
  loop.tokens_of_all = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  ModelSource source(input.checkpoint, input.spec, std::move(sequences), device, dtype, loop);

  std::vector<int64_t> score_rows = ScoreRows(options, source.sequence_lengths());
  const Sizes sizes =
      PlanSizes(options, source, DumpDType(dtype), static_cast<int64_t>(score_rows.size()));
  const Json plan = {
      {"layers", source.layers().size()}, {"sequences", source.sequence_lengths().size()},
      {"tokens", source.num_tokens()},    {"tensor_bytes", sizes.tensors},
      {"score_rows", score_rows.size()},  {"score_bytes", sizes.scores},
      {"logit_bytes", sizes.logits},      {"total_bytes", sizes.total()}};
  context.log.Info(
      "plan",
      fmt::format("{}, {}: {} before compression ({} of q, k, v and output, {} of "
                  "scores, {} of logits)",
                  DescribeDevice(device), ComputeDTypeName(dtype), Gigabytes(sizes.total()),
                  Gigabytes(sizes.tensors), Gigabytes(sizes.scores), Gigabytes(sizes.logits)),
      plan);
  if (context.dry_run) {
    context.out << fmt::format(
        "layers      {}\ntokens      {} in {} sequences\nq, k, v...  {}\nscores      {} ({} rows "
        "per layer)\nlogits      {}\ntotal       {}{}\n",
        source.layers().size(), source.num_tokens(), source.sequence_lengths().size(),
        Gigabytes(sizes.tensors), Gigabytes(sizes.scores), score_rows.size(),
        Gigabytes(sizes.logits), Gigabytes(sizes.total()),
        options.deflate > 0 ? " before compression" : "");
    return {.json = plan};
  }
  if (options.deflate == 0)
    CheckSpace(options.output, static_cast<uint64_t>(sizes.total()), "the dump");

  if (group.rank() == 0) ProveForwardPass(options.model, input, context.log);
  const Target target =
      OpenTarget(options, source, std::move(score_rows), std::move(counted), std::move(domains));
  // Rank 0 computes the weight digests in the background, because the files are read anyway.
  const std::string key = "model";
  auto model_json = std::async(std::launch::async, [&] {
    return group.rank() == 0 ? DescribeModel(input.location, input.spec, input.checkpoint) : Json();
  });
  const ReadTurns::Closing closing(*input.checkpoint.turns());
  RunLayers(options, source, target, group, context);
  input.checkpoint.turns()->Reach(1);
  Json model = model_json.get();
  if (group.rank() == 0) group.Set(key, model.dump());
  model = Json::parse(group.Get(key));
  if (target.hdf5) {
    if (options.logits) DumpLogits(source, *target.hdf5);
    target.hdf5->Commit(OriginOf(input, model));
  } else {
    target.upstream->Commit();
  }
  const auto written = [](int rank) { return fmt::format("written/{}", rank); };
  group.Set(written(group.rank()), "");
  if (group.rank() != 0) return {};
  for (int rank = 1; rank < group.size(); ++rank) (void)group.Get(written(rank));
  if (group.size() > 1) WriteWhole(given, input, shares, OriginOf(input, model));
  const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
  context.log.Info("done", fmt::format("{:.1f} s", seconds), {{"seconds", seconds}});
  return {ExitCode::kDone, given.output, plan};
}

CommandResult Capture(const CaptureOptions& options, CommandContext& context) {
  const std::unique_ptr<RankGroup> group =
      context.dry_run || options.model.model.empty()
          ? std::make_unique<RankGroup>()
          : JoinRanks(options.ranks, options.model.device, context);
  try {
    return CaptureAsRank(options, *group, context);
  } catch (const std::exception&) {
    EndJob(*group);
    throw;
  }
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  const oscar::Console console = oscar::EnterJob();
  oscar::CaptureOptions options;
  return oscar::RunCommand(
      argc, argv, oscar::CaptureTable(&options),
      [&](oscar::CommandContext& context) { return oscar::Capture(options, context); }, console);
}
