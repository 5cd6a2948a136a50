// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/input/forward_proof.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "calib/run/calibrate.h"
#include "capture/checkpoint/model_config.h"
#include "capture/model/run/device.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Returns text that the model did not write. On its own text, a model has a low loss even if its
// forward pass is wrong.
DataSet TextOf(const ModelInput& input) {
  if (input.data.self_generated.is_null()) return input.data;
  constexpr int64_t kTokens = 1024;
  DataOptions options;
  options.builtin = BuiltinText::kCalibration;
  options.token_budget = options.max_sequence = std::min(kTokens, input.spec.max_positions);
  options.model_directory = input.location.directory;
  return LoadData(options, input.tokenizer, input.spec.vocab_size);
}

std::optional<TextLoss> LossOfSample(const ModelArguments& arguments, const ModelInput& input) {
  const at::Device device = ParseDevice(arguments.device);
  const at::ScalarType dtype =
      ParseComputeDType(arguments.dtype, StoredDType(input.spec, input.checkpoint), device);
  std::vector<std::vector<int32_t>> sequences = TokenIds(TextOf(input));
  const ModelSource model(input.checkpoint, input.spec, std::move(sequences), device, dtype,
                          CalibrationLoopOptions());
  return MeasureTextLossAnew(model);
}

}  // namespace

void ProveForwardPass(const ModelArguments& arguments, const ModelInput& input, Log& log,
                      std::optional<TextLoss> loss) {
  const std::vector<std::string>& unknown = input.spec.fields.unknown;
  if (unknown.empty() || arguments.unknown_config != UnknownConfig::kCheck) return;
  if (!loss || !input.data.self_generated.is_null()) loss = LossOfSample(arguments, input);
  constexpr const char* kWayOut =
      "If these fields do not change the model's results, give --unknown-config ignore (also for a "
      "model with random weights)";
  const std::string fields =
      fmt::format("{}: unknown fields '{}'", ModelConfigName(input.location.directory),
                  fmt::join(unknown, "', '"));
  if (!loss) {
    throw InputError(fmt::format(
        "{}: every document has fewer than two tokens, so the loss cannot show that the "
        "forward pass is right without these fields. {}",
        fields, kWayOut));
  }
  if (!loss->proves_forward_pass()) {
    throw InputError(fmt::format(
        "{} are the likely cause of a mean loss of {:.2f} nats on {} tokens of text; a correct "
        "forward pass stays below {:.2f} ({:g} times the loss of guessing among {} ids). {}",
        fields, loss->mean, loss->tokens, loss->largest_proof(), TextLoss::kProofShare,
        loss->vocab_size, kWayOut));
  }
  log.Info("forward_pass_proved",
           fmt::format("config.json: a mean loss of {:.2f} nats, below {:.2f}, shows that the "
                       "unknown fields '{}' do not matter much",
                       loss->mean, loss->largest_proof(), fmt::join(unknown, "', '")),
           {{"mean", loss->mean}, {"largest", loss->largest_proof()}, {"fields", unknown}});
}

}  // namespace oscar
