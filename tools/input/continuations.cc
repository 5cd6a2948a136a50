// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/input/continuations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/model/run/device.h"
#include "capture/text/data/packing.h"
#include "linalg/base/error.h"
#include "tools/input/self_generate.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::vector<Document> Prefixes(const ContinuationArguments& arguments, const ModelInput& input) {
  const std::vector<int32_t> opening =
      OpeningTokens(input.location.directory, input.tokenizer.get());
  const int64_t of_text = arguments.prefix - std::ssize(opening);
  std::vector<Document> prefixes;
  for (const Document& text : input.data.documents) {
    for (int64_t begin = 0; of_text > 0 && begin + of_text <= std::ssize(text.ids) &&
                            std::ssize(prefixes) < arguments.samples;
         begin += of_text) {
      Document prefix{text.origin, opening};
      prefix.ids.insert(prefix.ids.end(), text.ids.begin() + begin,
                        text.ids.begin() + begin + of_text);
      prefixes.push_back(std::move(prefix));
    }
  }
  if (std::ssize(prefixes) < arguments.samples) {
    throw UsageError(fmt::format(
        "--reasoning {}: the texts have {} prefixes of {} tokens; give more --sequences or a "
        "shorter --reasoning-prefix",
        arguments.samples, prefixes.size(), arguments.prefix));
  }
  return prefixes;
}

}  // namespace

void AddContinuationOptions(OptionTable& table, ContinuationArguments* continuations) {
  table.Add(&continuations->samples,
            {.name = "reasoning",
             .help = "number of text prefixes that the model continues, always with the likeliest "
                     "token, to measure how soon a configuration departs from that continuation, "
                     "and the next-token KL, for the configurations of the recall tasks; 0: none",
             .min = 0});
  table.Add(
      &continuations->prefix,
      {.name = "reasoning_prefix", .help = "length of each prefix", .unit = "tokens", .min = 1});
  table.Add(&continuations->length, {.name = "reasoning_length",
                                     .help = "length of each continuation",
                                     .unit = "tokens",
                                     .min = 1});
  table.OnlyWith({"reasoning_prefix", "reasoning_length"}, "reasoning");
}

std::vector<std::vector<int32_t>> Continue(const ContinuationArguments& arguments,
                                           const ModelInput& input, at::Device device,
                                           at::ScalarType dtype, const fs::path& job,
                                           CommandContext& context) {
  if (arguments.samples == 0) return {};
  const int64_t length = arguments.prefix + arguments.length;
  if (length > input.spec.max_positions) {
    throw UsageError(
        fmt::format("--reasoning: prefix and continuation have {} tokens in total, but the model "
                    "supports only {} positions",
                    length, input.spec.max_positions));
  }
  const SelfGeneration model{
      .checkpoint = input.checkpoint,
      .spec = input.spec,
      .device = device,
      .dtype = dtype,
      .options = {.tokens = arguments.samples * arguments.length, .longest = arguments.length},
      .prompts = Prefixes(arguments, input),
      .chat_format = "none",
      .stop_ids = {},
      .max_sequence = length};
  const fs::path own = job / "reasoning";
  fs::create_directories(own);
  const uint64_t limit =
      SelfGenerationLimit(device, device.is_cpu() ? 0 : QueryMemory(device).free);
  std::vector<std::vector<int32_t>> continued;
  for (const Document& document : WriteDocuments(model, own, limit, input, context).documents)
    continued.push_back(document.ids);
  return continued;
}

}  // namespace oscar
