// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/validate_plan.h"

#include <fmt/format.h>

#include "capture/checkpoint/weight_storage.h"
#include "capture/text/data/samples.h"
#include "export/evaluate/passages.h"
#include "export/report/of_record.h"
#include "export/validate/validate.h"

namespace oscar {
namespace {

std::string ArmLines(const std::vector<Arm>& arms) {
  std::string text;
  for (const Arm& arm : arms)
    text += fmt::format("  {:<30} {}\n", arm.name, arm.method->description);
  return text;
}

struct StreamTokens {
  int64_t text = 0, recall = 0;  // tokens of the data, for one arm each
  size_t recall_arms = 0;
  std::vector<int64_t> recall_lengths = {};  // in tokens; passages are excluded
};

StreamTokens TokensOf(const ValidateOptions& options, const Artifact& artifact,
                      const ValidationInput& input) {
  const ValidationOptions& validation = options.validation;
  const std::string headline =
      HeadlineArm(input.arms, OwnArms(artifact.report()), validation.headline_arm).name;
  StreamTokens tokens{
      .text = input.model.data.counts.tokens_used,
      .recall_arms =
          RecallArms(input.arms, headline, validation.needle_arms, validation.arms).size()};
  for (const auto* samples : {&input.needles, &input.tool_calls})
    for (const NeedleSample& sample : *samples)
      tokens.recall_lengths.push_back(std::ssize(sample.ids));
  const ContinuationArguments& reasoning = options.continuations;
  tokens.recall_lengths.insert(tokens.recall_lengths.end(), static_cast<size_t>(reasoning.samples),
                               reasoning.prefix + reasoning.length);
  for (const int64_t length : tokens.recall_lengths) tokens.recall += length;
  return tokens;
}

uint64_t HiddenBytesOf(const StreamTokens& tokens, const ValidationInput& input) {
  return 4 * static_cast<uint64_t>(input.model.spec.hidden_size) *
         (static_cast<uint64_t>(tokens.text) * input.arms.size() +
          static_cast<uint64_t>(tokens.recall) * tokens.recall_arms);
}

}  // namespace

std::string DumpPlanText(const DumpSource& source, const Artifact& artifact,
                         const ValidationOptions& options) {
  const std::vector<Arm> arms =
      ParseArms(options.arms, MethodContext(artifact, source.layers(), options.methods), false);
  uint64_t bytes = 0;
  int64_t tokens = 0;
  for (size_t layer = 0; layer < source.layers().size(); ++layer) bytes += source.BytesRead(layer);
  for (const int64_t length : source.sequence_lengths()) tokens += length;
  return fmt::format(
             "read from the dump, once {:.2f} GB\n"
             "tokens                   {} through each configuration\n"
             "configurations           {}\n",
             static_cast<double>(bytes) / 1e9, tokens, arms.size()) +
         ArmLines(arms);
}

std::string ShowNeedles(const char* kind, const std::vector<NeedleSample>& needles, int64_t count) {
  std::string text;
  for (size_t i = 0; i < needles.size() && i < static_cast<size_t>(count); ++i) {
    const NeedleSample& needle = needles[i];
    text += fmt::format("{} {} at {} tokens, depth {:.0f} %:\n{}\n-> {}\n", kind, needle.task,
                        needle.ids.size(), needle.depth, MakeControlsVisible(needle.prompt),
                        MakeControlsVisible(needle.answer));
  }
  return text;
}

uint64_t HiddenBytes(const ValidateOptions& options, const Artifact& artifact,
                     const ValidationInput& input) {
  return HiddenBytesOf(TokensOf(options, artifact, input), input);
}

std::string PlanText(const ValidateOptions& options, const Artifact& artifact,
                     const ValidationInput& input, const OwnWordsPlan& own_words,
                     const std::optional<Forecast>& forecast) {
  uint64_t weights = 0;
  for (const TensorNeed& need : AllTensors(input.model.spec))
    weights += FindWeightStorage(input.model.checkpoint, need.name).bytes();
  const StreamTokens tokens = TokensOf(options, artifact, input);
  const std::string text = fmt::format(
      "weights, read once      {:.2f} GB\n"
      "text                    {} tokens through each configuration\n"
      "recall                  {} tokens through each of {} configurations\n"
      "hidden states           {:.2f} GB in float32\n"
      "configurations          {}\n",
      static_cast<double>(weights) / 1e9, tokens.text, tokens.recall, tokens.recall_arms,
      static_cast<double>(HiddenBytesOf(tokens, input)) / 1e9, input.arms.size());
  return text + ArmLines(input.arms) + own_words.line +
         (forecast ? fmt::format("expected time           {}\n", forecast->Text()) : "");
}

std::optional<Forecast> ForecastOf(const ValidateOptions& options, const Artifact& artifact,
                                   const ValidationInput& input, const OwnWordsPlan& own_words,
                                   at::Device device, at::ScalarType dtype) {
  if (!device.is_cpu() || options.kernels) return std::nullopt;
  StreamTokens tokens = TokensOf(options, artifact, input);
  if (WantsPassages(options)) {
    tokens.recall_lengths.insert(tokens.recall_lengths.end(),
                                 static_cast<size_t>(own_words.sequences), own_words.length);
  }
  Forecast forecast = ForecastValidation(options.validation, artifact, input, own_words,
                                         tokens.recall_lengths, tokens.recall_arms, dtype);
  if (forecast.parts.empty()) return std::nullopt;
  return forecast;
}

}  // namespace oscar
