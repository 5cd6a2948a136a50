// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/served_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <utility>

#include "capture/files/atomic_file.h"
#include "capture/model/run/device.h"
#include "export/evaluate/nearest_cache.h"
#include "export/validate/served_arms.h"
#include "linalg/base/error.h"
#include "tools/cli/output_path.h"
#include "tools/cli/text_table.h"
#include "tools/validate/completions_client.h"
#include "tools/validate/runtime_arms.h"
#include "tools/validate/validate_input.h"

namespace oscar {
namespace {

constexpr int64_t kPrompts = 6;          // default
constexpr int64_t kPromptTokens = 1024;  // default; servers prefill 2048 or more tokens at once
constexpr double kSure = 0.95;           // required confidence
constexpr double kOtherModel = 0.5;      // nats, for the first token, which reads no cache
constexpr int64_t kHopeless = 100;       // too many tokens to suggest, per measured token

// The text that the server generated, and its log probabilities.
struct Served {
  ServedText text;
  std::vector<double> log_probs;  // one per generated token, sequence by sequence
};

Served AskServer(CompletionsClient& client, const ModelInput& model, int64_t prompt_tokens,
                 int64_t max_tokens, CommandContext& context) {
  std::random_device random;
  Served served{.text = {.sequences = {}, .prompt_tokens = prompt_tokens}, .log_probs = {}};
  context.progress.Begin("asking the server", std::ssize(model.data.documents));
  for (std::vector<int32_t> ids : model.Sequences()) {
    // Changes a token at random, because a server does not prefill a prompt that is in its cache.
    ids.at(1) = static_cast<int32_t>(random() % static_cast<uint64_t>(model.spec.vocab_size));
    const ServedCompletion answer = client.Complete(ids, max_tokens);
    context.progress.StepDone(fmt::format("{} tokens", answer.ids.size()),
                              {{"tokens", answer.ids.size()}});
    if (answer.ids.empty()) continue;
    ids.insert(ids.end(), answer.ids.begin(), answer.ids.end());
    served.text.sequences.push_back(std::move(ids));
    served.log_probs.insert(served.log_probs.end(), answer.log_probs.begin(),
                            answer.log_probs.end());
  }
  context.progress.End();
  if (served.log_probs.size() < served.text.sequences.size() + 2) {
    throw InputError(
        fmt::format("{}: only {} tokens generated from {} prompts are tokens of this model; the "
                    "server stops at once or tokenizes differently",
                    client.server().url, served.log_probs.size(), model.data.documents.size()));
  }
  return served;
}

std::vector<TokenErrors> ScoreArms(const Served& served, const LayerLoop& loop,
                                   const MethodContext& methods, const std::vector<Arm>& arms,
                                   CommandContext& context) {
  context.progress.Begin("simulating caches", std::ssize(loop.spec().layers));
  const auto on_layer = [&](size_t layer) {
    context.progress.StepDone(fmt::format("layer {}", layer), {{"layer", layer}});
    return !context.stop.requested();
  };
  std::vector<TokenErrors> errors = ScoreServed(loop, served.text, methods, arms, on_layer);
  context.progress.End();
  return errors;
}

// Selects the tokens whose log probabilities depend on the cache. The first token of each text does
// not; `first` receives the mean distance between server and model over these first tokens.
ServedTokens TakeTokens(const Served& served, const std::vector<TokenErrors>& errors,
                        size_t num_own, double* first) {
  ServedTokens tokens{.server = {}, .arms = {}, .prompts = {}, .num_own = num_own};
  tokens.arms.resize(errors.size());
  size_t i = 0;
  for (size_t s = 0; s < served.text.sequences.size(); ++s) {
    *first += std::abs(served.log_probs[i] + errors[0].nll[i]) /
              static_cast<double>(served.text.sequences.size());
    const size_t length = served.text.sequences[s].size(),
                 end = i + length - static_cast<size_t>(served.text.prompt_tokens);
    for (++i; i < end; ++i) {
      tokens.server.push_back(served.log_probs[i]);
      tokens.prompts.push_back(static_cast<int64_t>(s));
      for (size_t arm = 0; arm < errors.size(); ++arm)
        tokens.arms[arm].push_back(-errors[arm].nll[i]);
    }
  }
  return tokens;
}

struct ServerVerdict {
  std::string name, text;
};

ServerVerdict ServerVerdictOf(const NearestCache& found, const ServedArms& arms, size_t tokens) {
  const double own = found.own_confidence;
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  const Arm& nearest = arms.arms[found.nearest];
  if (own >= kSure) {
    return {"artifact", fmt::format("The server behaves like this artifact ({}), confidence {}.",
                                    nearest.name, percent(own))};
  }
  if (own > 1 - kSure) {
    const std::string more =
        found.more_tokens > kHopeless * static_cast<int64_t>(tokens)
            ? "More tokens would not help."
            : fmt::format("About {} more tokens would be enough (--sequences, --served-tokens).",
                          found.more_tokens);
    return {"unclear",
            fmt::format(
                "It is not clear whether the server behaves like this artifact, confidence {}. {}",
                percent(own), more)};
  }
  const std::string not_own = fmt::format(
      "The server does not behave like this artifact, confidence {}: ", percent(1 - own));
  if (!found.explained || (found.nearest > 0 && found.nearest <= arms.num_own)) {
    return {"unlisted", not_own + "it uses another artifact, or has a fault that is not listed."};
  }
  return {nearest.name,
          fmt::format("{}it behaves like {} ({}), which is nearest in {} of the resamples.",
                      not_own, nearest.name, nearest.method->description,
                      percent(found.arms[found.nearest].nearest))};
}

// Returns a table of the caches, nearest to the server first. Adds the same data to `json`.
std::string ServedTable(const NearestCache& found, const ServedArms& arms, Json& json) {
  TextTable table({"cache", ">|server - it|", ">|exact - it|", ">nearest", "description"});
  std::vector<size_t> order(found.arms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return found.arms[i].distance; });
  for (const size_t i : order) {
    const NearestCache::Arm& arm = found.arms[i];
    const std::string description(arms.arms[i].method->description);
    const bool own = i > 0 && i <= arms.num_own;
    table.AddRow({arms.arms[i].name + (own ? " *" : ""), fmt::format("{:.4f}", arm.distance),
                  fmt::format("{:.4f}", arm.effect), fmt::format("{:.1f} %", 100 * arm.nearest),
                  description});
    json.push_back({{"name", arms.arms[i].name},
                    {"description", description},
                    {"artifact", own},
                    {"distance", arm.distance},
                    {"effect", arm.effect},
                    {"nearest", arm.nearest}});
  }
  return table.ToString();
}

// Returns the arms whose caches the server may use: the one that the user names, else all of the
// artifact.
std::vector<std::string> OwnNames(const ValidateOptions& options, const Artifact& artifact) {
  if (!options.validation.headline_arm.empty()) return {options.validation.headline_arm};
  std::vector<std::string> names;
  AddRuntimeArms(options.runtimes, artifact, names);
  return names.empty() ? ArmsOfArtifact(artifact) : names;
}

}  // namespace

CommandResult CheckServed(ValidateOptions options, CommandContext& context) {
  if (options.artifact.empty() || options.model.model.empty())
    throw UsageError(
        "--served: also give ARTIFACT and --model MODEL, the model that the server should serve");
  if (!options.output.empty()) CheckNewOutput(options.output);
  const Artifact artifact = Artifact::Open(options.artifact);
  MethodContext::Options& methods = options.validation.methods;
  TakeServing(artifact, options);
  if (options.length == 0) options.length = kPromptTokens;
  if (options.sequences == 0) options.sequences = kPrompts;
  methods.prefill_tokens = options.length;
  options.needle_samples = options.tool_calls = 0;
  const std::vector<std::string> others =
      std::exchange(options.validation.arms, {std::string("hadamard")});
  const ValidationInput input = OpenValidationInput(options, artifact, context.log);
  const ModelInput& model = input.model;
  const int64_t inside = methods.windows.sink + methods.windows.recent;
  if (options.length <= inside ||
      options.length + options.served_tokens > model.spec.max_positions) {
    throw UsageError(fmt::format(
        "--length {}: a prompt must be longer than the {} tokens that the windows keep exact, and "
        "together with --served-tokens {} must fit into the model's {} positions",
        options.length, inside, options.served_tokens, model.spec.max_positions));
  }
  const at::Device device = ParseDevice(options.model.device);
  std::vector<std::vector<int32_t>> sequences;
  LoopOptions loop_options;
  loop_options.token_ids = &sequences;
  if (options.cache_dtype == "bf16") loop_options.cache_dtype = at::kBFloat16;
  const LayerLoop loop(
      model.checkpoint, model.spec, device,
      ParseComputeDType(options.model.dtype, StoredDType(model.spec, model.checkpoint), device),
      loop_options);
  const MethodContext method_context(
      artifact, loop.seen_layers(),
      MethodOptions(options.validation, model.checkpoint, model.spec));
  const ServedArms arms = MakeServedArms(OwnNames(options, artifact), others, method_context);
  if (context.dry_run) {
    context.out << fmt::format(
        "{} prompts of {} tokens and {} generated tokens each, through each of {} caches\n",
        model.data.documents.size(), options.length, options.served_tokens, arms.arms.size());
    return {};
  }

  const char* const key = std::getenv("OPENAI_API_KEY");
  CompletionsClient client({.url = options.served,
                            .model = options.served_model,
                            .timeout_seconds = options.served_timeout,
                            .api_key = key == nullptr ? "" : key,
                            .stop_requested = [&context] { return context.stop.requested(); }},
                           model.tokenizer, model.spec.vocab_size);
  if (key != nullptr && *key != 0 && client.server().api_key.empty()) {
    context.log.Info("key_not_sent",
                     fmt::format("OPENAI_API_KEY is not sent to {}, because http is not encrypted; "
                                 "give an https address if the server needs the key",
                                 client.server().url));
  }
  const Served served = AskServer(client, model, options.length, options.served_tokens, context);
  sequences = served.text.sequences;
  double first = 0;
  const ServedTokens tokens = TakeTokens(
      served, ScoreArms(served, loop, method_context, arms.arms, context), arms.num_own, &first);
  if (first > kOtherModel) {
    throw InputError(
        fmt::format("{}: the log probabilities of first tokens, which read no cache, differ from "
                    "this model's by {:.2f} nats; the server has another model or other weights",
                    client.server().url, first));
  }
  const NearestCache found = FindNearestCache(
      tokens, {.resamples = options.validation.resamples, .seed = options.validation.seed});
  const ServerVerdict verdict = ServerVerdictOf(found, arms, tokens.server.size());
  CommandResult result;
  if (verdict.name != "artifact") result.exit_code = ExitCode::kGateFailed;
  Json rows = Json::array();
  context.out << ServedTable(found, arms, rows)
              << fmt::format(
                     "* this artifact; in nats, means over {} tokens generated from {} prompts of "
                     "{} tokens; {:.4f} at the first token, which reads no cache\n{}\n",
                     tokens.server.size(), served.text.sequences.size(), options.length, first,
                     verdict.text);
  result.json = {{"served", client.server().url},
                 {"served_model", client.server().model},
                 {"artifact", artifact.identity()},
                 {"verdict", verdict.name},
                 {"text", verdict.text},
                 {"confidence", found.own_confidence},
                 {"more_tokens", found.more_tokens},
                 {"first_token_distance", first},
                 {"tokens", tokens.server.size()},
                 {"prompts", served.text.sequences.size()},
                 {"prompt_tokens", options.length},
                 {"sink_tokens", methods.windows.sink},
                 {"recent_tokens", methods.windows.recent},
                 {"arms", rows},
                 {"configuration", context.config}};
  if (!options.output.empty()) {
    WriteFileAtomically(options.output, CanonicalJson(result.json));
    result.made = options.output;
  }
  return result;
}

}  // namespace oscar
