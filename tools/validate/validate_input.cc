// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/validate_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "calib/run/provenance.h"
#include "capture/checkpoint/model_config.h"
#include "capture/files/digest_json.h"
#include "capture/model/run/latent_attention.h"
#include "capture/model/spec/use_limits.h"
#include "export/artifact/artifact_format.h"
#include "export/evaluate/passages.h"
#include "export/evaluate/tool_calls.h"
#include "export/report/of_record.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int64_t kLongestNeedle = 8192;  // tokens

// Identifies the model by samples of its weight files, because reading all weights again takes
// long.
Json ModelIdentity(const ModelInput& model) {
  return {{"config", DigestToJson(DigestModelConfig(model.location.directory))},
          {"weights_sample", SampleWeights(model.checkpoint)}};
}

// Compares only what the artifact records about its model.
bool IsSameModel(const Artifact& artifact, const Json& identity) {
  const Json of_artifact = artifact.manifest().value("model", Json::object());
  for (const auto& [key, value] : identity.items()) {
    if (of_artifact.contains(key) && of_artifact[key] != value) return false;
  }
  return true;
}

std::vector<NeedleSample> MakeNeedles(const ValidateOptions& options, const ModelInput& model) {
  if (options.needle_samples == 0 || options.validation.local_only || !model.tokenizer) return {};
  std::vector<std::string> tasks = options.needle_tasks;
  std::erase(tasks, kPassagesTask);
  if (tasks.empty() && !options.needle_tasks.empty()) return {};
  NeedleOptions needle;
  needle.lengths = options.needle_lengths;
  if (needle.lengths.empty()) {
    const int64_t longest = std::min(model.spec.max_positions, kLongestNeedle);
    needle.lengths = {longest / 4, longest};
  }
  needle.samples_per_task = options.needle_samples;
  needle.depths.assign(options.needle_depths.begin(), options.needle_depths.end());
  needle.tasks = std::move(tasks);
  needle.seed = options.validation.seed;
  return MakeNeedleSamples(needle, *model.tokenizer, model.spec.max_positions);
}

std::vector<NeedleSample> MakeToolCalls(const ValidateOptions& options, const ModelInput& model) {
  if (options.tool_calls == 0 || options.validation.local_only) return {};
  if (!model.tokenizer) {
    throw UsageError(
        fmt::format("--tool-calls: {} has no tokenizer, which tool-call conversations need",
                    model.location.directory.string()));
  }
  const std::optional<ChatFormat> chat =
      ChatFormat::Find(model.location.directory,
                       {options.chat.chat_template, options.chat.template_var, options.chat.date});
  ToolCallOptions calls{.lengths = options.tool_call_lengths,
                        .samples_per_task = options.tool_calls,
                        .tasks = options.tool_call_tasks,
                        .seed = options.validation.seed,
                        .chat = chat ? &*chat : nullptr};
  if (calls.lengths.empty()) calls.lengths = {std::min(model.spec.max_positions, kLongestNeedle)};
  return MakeToolCallSamples(calls, *model.tokenizer, model.spec.max_positions);
}

// Methods must not be fitted to the text on which they are judged.
DataSet LoadMethodData(const ValidateOptions& options, int64_t length, Log& log,
                       const ModelInput& model) {
  DataSet data = LoadModelData({.data = options.method_data,
                                .tokens = options.method_tokens,
                                .max_sequence = std::min(length, options.method_tokens),
                                .pack = options.pack,
                                .separator = options.separator,
                                .chat = options.chat,
                                .tokens_flag = "--method-tokens",
                                .length_flag = "--length"},
                               BuiltinText::kCalibration, log, model);
  CheckOverlap(FindOverlap(MakeFingerprints(data), data.digest, model.data), model.data);
  return data;
}

}  // namespace

void TakeServing(const Artifact& artifact, ValidateOptions& options) {
  const ServingSettings serving =
      ServingOf(artifact.report(), (artifact.directory() / kReportFile).string());
  const auto or_own = [](int64_t given, int64_t recorded) { return given < 0 ? recorded : given; };
  MethodContext::Options& methods = options.validation.methods;
  methods.windows = {or_own(options.sink_tokens, serving.sink_tokens),
                     or_own(options.recent_tokens, serving.recent_tokens)};
  methods.quant_group_size = or_own(options.quant_group_size, serving.quant_group_size);
}

OverlapResult OverlapOf(const Artifact& artifact, const DataSet& data) {
  return FindOverlap(artifact.manifest().value("data", Json::object()),
                     (artifact.directory() / kManifestFile).string(), data);
}

bool WantsPassages(const ValidateOptions& options) {
  return options.needle_samples > 0 &&
         (options.needle_tasks.empty() ||
          std::ranges::find(options.needle_tasks, kPassagesTask) != options.needle_tasks.end());
}

ValidationInput OpenValidationInput(const ValidateOptions& options, const Artifact& artifact,
                                    Log& log) {
  CheckDataFiles(options.data);
  ValidationInput input;
  input.model = OpenModel(options.model, log);
  for (const LayerSpec& layer : input.model.spec.layers) {
    if (const std::string why = WhyNotInKernels(layer); options.kernels && !why.empty())
      throw UsageError("--kernels: " + why + "; leave out --kernels to simulate the cache");
  }
  input.identity = ModelIdentity(input.model);
  const auto check_model = [&](const Artifact& of) {
    const bool same = IsSameModel(of, input.identity);
    if (same || options.allow_other_model) return same;
    throw InputError(fmt::format(
        "{}: is not the model that {} was made from (its config.json or weights differ); rotations "
        "do not transfer between models. To measure the effect anyway, give --allow-other-model",
        input.model.location.directory.string(), of.directory().string()));
  };
  input.same_model = check_model(artifact);
  for (const auto& other : options.others) check_model(*other);
  if (options.length > input.model.spec.max_positions) {
    throw UsageError(fmt::format("--length {}: the model supports {} positions ({})",
                                 options.length, input.model.spec.max_positions,
                                 input.model.spec.positions_limit));
  }
  const int64_t length = options.length > 0
                             ? options.length
                             : std::min(options.usual_length, input.model.spec.max_positions);
  input.model.data = LoadModelData({.data = options.data,
                                    .tokens = options.sequences * length,
                                    .max_sequence = length,
                                    .pack = options.pack,
                                    .separator = options.separator,
                                    .chat = options.chat,
                                    .tokens_flag = "--sequences",
                                    .length_flag = "--length",
                                    .tokens_piece = length},
                                   BuiltinText::kEvaluation, log, input.model);
  input.overlap = OverlapOf(artifact, input.model.data);
  CheckOverlap(input.overlap, input.model.data);
  for (const auto& other : options.others)
    CheckOverlap(OverlapOf(*other, input.model.data), input.model.data);
  const std::vector<LayerSpec> layers = LayersInLatentSpace(input.model.spec);
  input.arms = ParseArms(
      options.validation.arms,
      MethodContext(artifact, layers,
                    MethodOptions(options.validation, input.model.checkpoint, input.model.spec)));
  if (NeedsRows(input.arms)) input.method_data = LoadMethodData(options, length, log, input.model);
  input.needles = MakeNeedles(options, input.model);
  input.tool_calls = MakeToolCalls(options, input.model);
  if (!input.tool_calls.empty()) {
    log.Info("tool_calls", fmt::format("tool calls: {} conversations", input.tool_calls.size()),
             {{"samples", input.tool_calls.size()}});
  }
  size_t tokens = 0;
  for (const NeedleSample& needle : input.needles) tokens += needle.ids.size();
  log.Info(
      "held_out",
      fmt::format("held out: {}; {} recall samples, {} tokens",
                  input.overlap.known
                      ? fmt::format("{:.1f} % of its passages are in the calibration data",
                                    100 * input.overlap.fraction)
                      : std::string("the artifact does not record which data it was fitted to"),
                  input.needles.size(), tokens),
      input.overlap.ToJson());
  return input;
}

Json ValidationModelJson(const ValidationInput& input) {
  Json json = input.identity;
  json["id"] = input.model.location.id;
  json["revision"] = input.model.location.revision;
  json["calibrated_on_it"] = input.same_model;
  return json;
}

Json ValidationDataJson(const DataSet& data, const OverlapResult& overlap) {
  std::map<size_t, int64_t> lengths;
  size_t tokens = 0;
  for (const Document& document : data.documents) {
    ++lengths[document.ids.size()];
    tokens += document.ids.size();
  }
  Json texts = Json::array();
  for (const auto& [length, count] : lengths)
    texts.push_back({{"length", length}, {"sequences", count}});
  Json json = {{"name", data.name},
               {"digest", data.digest},
               {"tokens", tokens},
               {"texts", texts},
               {"overlap", overlap.ToJson()}};
  if (data.masked()) json["counted_queries"] = data.counted_queries();
  return json;
}

void AddScoredSize(std::span<const ScoredToken> tokens, const Tokenizer* tokenizer, Json& data) {
  if (tokenizer == nullptr || tokens.empty()) return;
  size_t words = 0, bytes = 0;
  for (size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
    std::vector<int32_t> ids;  // the ids of consecutive tokens
    for (end = begin;
         end < tokens.size() && tokens[end].sequence == tokens[begin].sequence &&
         tokens[end].position - tokens[begin].position == static_cast<int64_t>(end - begin);
         ++end)
      ids.push_back(tokens[end].id);
    const std::string text = tokenizer->Decode(ids, /*skip_special_tokens=*/true);
    bytes += text.size();
    std::istringstream of_text(text);
    for (std::string word; of_text >> word;) ++words;
  }
  data["scored_words"] = words;
  data["scored_bytes"] = bytes;
}

}  // namespace oscar
