// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/input/own_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "calib/job/job_directory.h"
#include "capture/model/run/device.h"
#include "capture/text/data/packing.h"
#include "linalg/base/error.h"
#include "tools/cli/command.h"  // DescribeFailure
#include "tools/input/self_generate.h"

namespace oscar {
namespace {

constexpr int64_t kOwnLength = 512, kOwnWindows = 4;  // minimum in tokens; multiple of windows

bool IsByDefault(const OwnWordsRequest& request) { return request.arguments.sequences < 0; }

int64_t LengthOf(const OwnWordsRequest& request, const ModelSpec& spec) {
  const int64_t asked = request.arguments.length;
  if (asked > spec.max_positions) {
    throw UsageError(fmt::format("--self-length {}: the model supports {} positions", asked,
                                 spec.max_positions));
  }
  if (asked > 0) return asked;
  return std::min(spec.max_positions, std::max(kOwnLength, kOwnWindows * request.exact_tokens));
}

SelfGeneration Generation(const OwnWordsRequest& request, const ModelInput& input) {
  const int64_t sequences = IsByDefault(request) ? kOwnSequences : request.arguments.sequences;
  const int64_t length = LengthOf(request, input.spec);
  const std::vector<int32_t> opening =
      OpeningTokens(input.location.directory, input.tokenizer.get());
  const int64_t drawn = length - std::ssize(opening);
  if (drawn < 1) {
    throw UsageError(fmt::format(
        "--self-length {}: every text begins with {} fixed tokens, so give a larger length", length,
        opening.size()));
  }
  return {.checkpoint = input.checkpoint,
          .spec = input.spec,
          .device = request.device,
          .dtype = request.dtype,
          .options = {.tokens = sequences * drawn,
                      .longest = drawn,
                      .sampling = {.temperature = 1, .top_p = 1, .seed = request.seed}},
          .prompts = std::vector<Document>(static_cast<size_t>(sequences), {"self", opening}),
          .chat_format = "none",
          .stop_ids = {},
          .max_sequence = length};
}

uint64_t LimitOf(const OwnWordsRequest& request) {
  return SelfGenerationLimit(request.device,
                             request.device.is_cpu() ? 0 : QueryMemory(request.device).free);
}

// The model that will write the texts, or the reason why it cannot. (If the user requested texts,
// that is an error instead.)
struct Drawing {
  std::optional<SelfGeneration> model;
  std::string why_not;
};
Drawing Prepare(const OwnWordsRequest& request, const ModelInput& input) {
  try {
    const SelfGeneration model = Generation(request, input);
    PlanSelfGeneration(model, LimitOf(request));
    return {model, ""};
  } catch (const ResourceError& error) {  // the weights do not fit into memory
    if (!IsByDefault(request)) throw;
    return {std::nullopt, DescribeFailure(error).message};
  } catch (const InputError& error) {  // the model has no token to begin a text with
    if (!IsByDefault(request)) throw;
    return {std::nullopt, DescribeFailure(error).message};
  }
}

}  // namespace

void AddOwnWordsOptions(OptionTable& table, OwnWordsArguments* own) {
  table.Add(&own->sequences,
            {.name = "self_generate",
             .help = "number of sequences that the model generates itself, at temperature 1, to be "
                     "measured on in addition to the text; they are kept until the run is done, so "
                     "that a resumed run uses the same; auto: 4, or none in the quick scope or if "
                     "the weights do not fit into memory",
             .min = -1,
             .main = true});
  table.Add(&own->length, {.name = "self_length",
                           .help = "length of each sequence that the model generates; only tokens "
                                   "predicted from a quantized token are scored; 0: 512, or four "
                                   "times the length of the windows if that is more",
                           .unit = "tokens",
                           .min = 0});
  table.NotWith({"self_length"}, "self_generate", "", 0);
}

OwnWords DrawOwnWords(const OwnWordsRequest& request, const ModelInput& input,
                      const std::filesystem::path& job, CommandContext& context) {
  if (request.arguments.sequences == 0) return {};
  const Drawing drawing = Prepare(request, input);
  OwnWords own;
  if (!drawing.model) {
    own.description = {{"sequences", 0}, {"reason", drawing.why_not}};
    context.log.Info("own_words", "own words: none are generated: " + drawing.why_not,
                     own.description);
    return own;
  }
  const SelfGeneration& model = *drawing.model;
  const SelfGenerated drawn = WriteDocuments(model, job, LimitOf(request), input, context);
  for (const Document& document : drawn.documents) own.texts.push_back(document.ids);
  own.description = {{"sequences", drawn.documents.size()},
                     {"length", model.max_sequence},
                     {"begin_with", model.prompts.front().ids},
                     {"temperature", model.options.sampling.temperature},
                     {"seed", request.seed},
                     {"digest", DataDigest(drawn.documents)}};
  context.log.Info("own_words",
                   fmt::format("own words: {} sequences of {} tokens generated by the model{}",
                               drawn.documents.size(), model.max_sequence,
                               drawn.from_job ? " in the run that is resumed" : ""),
                   own.description);
  if (model.max_sequence <= request.exact_tokens + 1) {
    own.description["reason"] = fmt::format(
        "none of their tokens is predicted from a quantized token, because the windows keep {} "
        "tokens exact",
        request.exact_tokens);
  }
  return own;
}

OwnWordsPlan PlanOwnWords(const OwnWordsRequest& request, const ModelInput& input) {
  if (request.arguments.sequences == 0) return {};
  const Drawing drawing = Prepare(request, input);
  if (!drawing.model) return {.line = "own words               none: " + drawing.why_not + "\n"};
  const SelfGeneration& model = *drawing.model;
  const SelfGenerationPlan plan = PlanSelfGeneration(model, LimitOf(request));
  return {
      std::ssize(model.prompts), model.max_sequence, plan.seconds,
      fmt::format("own words               {} sequences of {} tokens, {} at once: {} steps, "
                  "about {:.0f} s\n",
                  model.prompts.size(), model.max_sequence, plan.batch, plan.steps, plan.seconds)};
}

}  // namespace oscar
