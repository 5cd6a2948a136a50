// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/measures/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "linalg/base/check.h"

namespace oscar {
namespace {

using enum Format;

constexpr unsigned kShown = kInterval | kSmallPrint;
constexpr unsigned kTables = kPage | kTerminal, kAlways = kGate | kTables | kLoss;
constexpr Measure kMeasures[] = {
    {"bits", "bits_per_element.paper", "bits, formula", kBits, kTerminal, "by the paper's formula"},
    {"stored_bits", "bits_per_element.actual", "stored bits", kBits, kTables,
     "counting every byte"},
    {"kl", "local.kl.mean", "attention-KL", kError, kAlways | kShown,
     "mean attention-KL at the reference's q, k, v, in nats"},
    {"kl_p99", "local.kl.p99", "attention-KL, 99 %", kError, kGate,
     "attention-KL, 99th percentile of the rows"},
    {"kl_max", "local.kl.max", "attention-KL, largest", kError, kGate,
     "attention-KL of the worst row"},
    {"e2e_kl", "end_to_end.kl.mean", "attention-KL end to end", kError, kAlways | kShown,
     "mean attention-KL with the configuration's own hidden states"},
    {"output_rel_error", "local.output_rel_error", "output error", kError, kAlways,
     "relative error of the attention output"},
    {"scored_tokens", "text.scored_tokens", "tokens", kCount, 0, "tokens of the text"},
    {"perplexity", "text.perplexity", "perplexity", kPerplexity, kAlways | kShown,
     "perplexity of the evaluation text"},
    {"ppl_ratio", "text.ppl_ratio", "ratio", kPerplexity, kGate | kTables | kShown | kLmEval,
     "perplexity divided by that of the unquantized model"},
    {"token_kl", "text.token_kl.mean", "next-token KL", kError, kAlways | kInterval | kLmEval,
     "mean KL of next-token distributions, in nats"},
    {"token_kl_median", "text.token_kl.median", "next-token KL, median", kError, 0, ""},
    {"token_kl_p99", "text.token_kl.p99", "next-token KL, 99 %", kError, 0, ""},
    {"token_kl_p99_9", "text.token_kl.p99_9", "next-token KL, 99.9 %", kError, 0, ""},
    {"token_kl_max", "text.token_kl.max", "next-token KL, largest", kError, 0, ""},
    {"top1_agreement", "text.top1_agreement", "same token", kPercent, kAlways | kLmEval,
     "share of tokens with the same first choice"},
    {"own_perplexity", "own_words.perplexity", "perplexity, own words", kPerplexity, kPage | kShown,
     ""},
    {"own_ppl_ratio", "own_words.ppl_ratio", "ratio, own words", kPerplexity, kTables | kShown, ""},
    {"own_token_kl", "own_words.token_kl.mean", "next-token KL, own words", kError,
     kTables | kInterval, ""},
    {"own_top1_agreement", "own_words.top1_agreement", "same token, own words", kPercent, kTables,
     ""},
    {"tool_call", "tool_call.accuracy", "tool calls", kPercent, kGate | kTables | kShown,
     "share of tool calls with exact arguments, 0 to 1"},
    {"tool_call_kl", "tool_call.token_kl.mean", "argument KL", kError, kGate | kTables | kShown,
     "mean next-token KL on the arguments of tool calls, in nats"},
    {"divergence", "reasoning.tokens_until", "departs after", kBits, kGate | kTables | kShown,
     "mean number of tokens until a continuation departs"},
    {"reasoning_kl", "reasoning.token_kl.mean", "continuation KL", kError, kGate | kTables | kShown,
     "mean next-token KL on continuations, in nats"},
    {"needle", "needle.accuracy", "needle", kPercent, kAlways, "needle recall, 0 to 1"},
};

}  // namespace

std::vector<Measure> Measures(unsigned places) {
  std::vector<Measure> measures(std::begin(kMeasures), std::end(kMeasures));
  if (places != ~0U)
    std::erase_if(measures, [&](const Measure& measure) { return (measure.places & places) == 0; });
  return measures;
}

const Measure& MeasureNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kMeasures, name, &Measure::name);
  OSCAR_CHECK(found != std::end(kMeasures));
  return *found;
}

std::string Measure::interval() const {
  const std::string of_mean = path.ends_with(".mean") ? ".interval" : "_interval";
  return std::string(path.substr(0, path.rfind(".mean"))) + of_mean;
}

const Json* FindAt(const Json& arm, std::string_view path) {
  const Json* value = &arm;
  while (!path.empty()) {
    const std::string key(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    if (!value->is_object() || !value->contains(key)) return nullptr;
    value = &value->at(key);
  }
  return value;
}

std::string TextOf(const Measure& measure, const Json& arm) {
  const Json* number = FindAt(arm, measure.path);
  if (number == nullptr) return {};
  const double value = number->get<double>();
  if (measure.format == kPercent) return fmt::format("{:.1f} %", 100 * value);
  return fmt::format("{:.{}f}", value, measure.format == kBits ? 2 : 4);
}

Json RuntimeLoss(const Json& runtime_arm, const Json& ideal_arm) {
  Json loss = {{"arm", ideal_arm.at("name")}};
  for (const Measure& measure : Measures(kLoss)) {
    const Json *runtime = FindAt(runtime_arm, measure.path),
               *ideal = FindAt(ideal_arm, measure.path);
    if (runtime != nullptr && ideal != nullptr)
      loss[std::string(measure.loss_name())] = runtime->get<double>() - ideal->get<double>();
  }
  return loss;
}

}  // namespace oscar
