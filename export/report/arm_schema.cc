// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/arm_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "capture/files/quote.h"
#include "export/report/runtime_loss.h"

namespace oscar {
namespace {

void CheckDistribution(const Spot& spot) {
  Closed(spot, {{"mean", CheckNumber},
                {"interval", CheckInterval, kOptional},
                {"error", CheckNonNegative, kOptional},
                {"min", CheckNumber, kOptional},
                {"p0_1", CheckNumber, kOptional},
                {"p1", CheckNumber, kOptional},
                {"p5", CheckNumber, kOptional},
                {"p10", CheckNumber, kOptional},
                {"p25", CheckNumber, kOptional},
                {"median", CheckNumber},
                {"p75", CheckNumber, kOptional},
                {"p90", CheckNumber},
                {"p95", CheckNumber, kOptional},
                {"p99", CheckNumber},
                {"p99_9", CheckNumber, kOptional},
                {"max", CheckNumber},
                {"rms", CheckNonNegative, kOptional},
                {"rms_error", CheckNonNegative, kOptional}});
}

void CheckRowsKl(const Spot& spot) { Closed(spot, {{"rows", CheckCount}, {"kl", CheckNumber}}); }
void CheckWorst(const Spot& spot) {
  Closed(spot, {{"layer_id", CheckCount}, {"kv_head", CheckCount}, {"kl", CheckNumber}});
}
void CheckPosition(const Spot& spot) {
  Closed(spot, {{"from", CheckCount},
                {"to", CheckCount},
                {"rows", CheckCount},
                {"kl", CheckNumber},
                {"inside_windows", CheckBool}});
}
void CheckLength(const Spot& spot) {
  Closed(spot, {{"length", CheckCount}, {"sequences", CheckCount}, {"kl", CheckNumber}});
}

void CheckHeads(const Spot& spot) {
  Closed(spot, {{"layer_ids", ArrayOf<CheckCount>},
                {"kl", ArrayOf<ArrayOf<CheckNumber>>},
                {"output_rel_error", ArrayOf<ArrayOf<CheckNumber>>, kOptional}});
  CheckSameSize(spot, "layer_ids", "kl");
  CheckSameSize(spot, "layer_ids", "output_rel_error");
}

void CheckMetrics(const Spot& spot) {
  Closed(spot, {{"rows", CheckCount},
                {"kl", CheckDistribution},
                {"kl_all", CheckNumber},
                {"inside_windows", CheckRowsKl},
                {"beyond_windows", CheckRowsKl},
                {"output_rel_error", CheckNonNegative},
                {"logit_mse", CheckNonNegative},
                {"logit_rel_error", CheckNonNegative},
                {"k_mse", CheckNonNegative},
                {"k_rel_error", CheckNonNegative},
                {"v_mse", CheckNonNegative},
                {"v_rel_error", CheckNonNegative},
                {"k_term", CheckNonNegative},
                {"v_term", CheckNonNegative},
                {"worst", CheckWorst},
                {"by_position", ArrayOf<CheckPosition>},
                {"by_length", ArrayOf<CheckLength>},
                {"heads", CheckHeads}});
}

void CheckTextPosition(const Spot& spot) {
  Closed(
      spot,
      {{"from", CheckCount}, {"to", CheckCount}, {"token_kl", CheckNumber}, {"nll", CheckNumber}});
}
void CheckTextMetrics(const Spot& spot) {
  Closed(spot, {{"scored_tokens", CheckCount},
                {"perplexity", CheckNonNegative},
                {"perplexity_interval", CheckInterval, kOptional},
                {"perplexity_error", CheckNonNegative, kOptional},
                {"ppl_ratio", CheckNonNegative},
                {"ppl_ratio_interval", CheckInterval, kOptional},
                {"ppl_ratio_error", CheckNonNegative, kOptional},
                {"token_kl", CheckDistribution},
                {"token_probability", CheckDistribution, kOptional},
                {"top1_agreement", CheckFraction},
                {"by_position", ArrayOf<CheckTextPosition>}});
}

void CheckNeedleTask(const Spot& spot) {
  Closed(spot, {{"task", CheckText},
                {"length", CheckCount},
                {"samples", CheckCount},
                {"accuracy", CheckFraction},
                {"answer_nll", CheckNumber, kOptional}});
}
void CheckNeedleDepth(const Spot& spot) {
  Closed(spot, {{"depth_from", CheckNonNegative},
                {"depth_to", CheckNonNegative},
                {"samples", CheckCount},
                {"accuracy", CheckFraction},
                {"answer_nll", CheckNumber, kOptional}});
}
void CheckNeedleLength(const Spot& spot) {
  Closed(spot, {{"length", CheckCount},
                {"samples", CheckCount},
                {"accuracy", CheckFraction},
                {"answer_nll", CheckNumber, kOptional}});
}
void CheckNeedleLengthDepth(const Spot& spot) {
  Closed(spot, {{"length", CheckCount},
                {"depth_from", CheckNonNegative},
                {"depth_to", CheckNonNegative},
                {"samples", CheckCount},
                {"accuracy", CheckFraction}});
}
void CheckNeedle(const Spot& spot) {
  Closed(spot, {{"accuracy", CheckFraction},
                {"answer_nll", CheckNumber},
                {"samples", CheckCount, kOptional},
                {"by_task", ArrayOf<CheckNeedleTask>},
                {"by_depth", ArrayOf<CheckNeedleDepth>},
                {"by_length", ArrayOf<CheckNeedleLength>},
                {"by_length_depth", ArrayOf<CheckNeedleLengthDepth>, kOptional}});
}

void CheckToolCallTask(const Spot& spot) {
  Closed(spot, {{"task", CheckText},
                {"length", CheckCount},
                {"samples", CheckCount},
                {"tokens", CheckCount},
                {"token_kl", CheckNumber},
                {"accuracy", CheckFraction},
                {"exact_calls", CheckFraction}});
}
void CheckToolCall(const Spot& spot) {
  Closed(spot, {{"samples", CheckCount},
                {"tokens", CheckCount},
                {"token_kl", CheckDistribution},
                {"accuracy", CheckFraction, kOptional},
                {"accuracy_interval", CheckInterval, kOptional},
                {"exact_calls", CheckFraction, kOptional},
                {"by_task", ArrayOf<CheckToolCallTask>}});
}

void CheckReasoning(const Spot& spot) {
  Closed(spot, {{"samples", CheckCount},
                {"tokens", CheckCount},
                {"diverged", CheckFraction},
                {"tokens_until", CheckNonNegative},
                {"tokens_until_interval", CheckInterval, kOptional},
                {"token_kl", CheckDistribution},
                {"kl_after", CheckNumber, kOptional},
                {"kl_after_interval", CheckInterval, kOptional}});
}

void CheckBits(const Spot& spot) {
  Closed(spot, {{"paper", CheckNonNegative},
                {"actual", CheckNonNegative},
                {"tokens", CheckCount},
                {"note", CheckText, kOptional}});
}

void CheckIdeal(const Spot& spot) {
  Closed(spot, {{"arm", CheckText},
                {"kl", CheckNumber},
                {"end_to_end_kl", CheckNumber, kOptional},
                {"output_rel_error", CheckNumber},
                {"perplexity", CheckNumber, kOptional},
                {"token_kl", CheckNumber, kOptional},
                {"top1_agreement", CheckNumber, kOptional},
                {"needle", CheckNumber, kOptional}});
}

// A mean KL, or a mean difference of two, over so many query rows.
void CheckEstimate(const Spot& spot) {
  Closed(spot,
         {{"rows", CheckCount}, {"mean", CheckNumber}, {"interval", CheckInterval, kOptional}});
}
void CheckBehind(const Spot& spot) {
  Closed(spot, {{"local", CheckEstimate, kOptional},
                {"text", CheckEstimate, kOptional},
                {"own_words", CheckEstimate, kOptional}});
}
void CheckDomain(const Spot& spot) {
  Closed(spot, {{"domain", CheckText},
                {"local", CheckEstimate, kOptional},
                {"text", CheckEstimate, kOptional},
                {"behind", CheckBehind, kOptional}});
}

void CheckHeld(const Spot& spot) {
  Closed(spot, {{"tokens", CheckCount}, {"bits", CheckNonNegative}, {"bytes", CheckCount}});
}
void CheckArmCapacity(const Spot& spot) {
  Closed(spot, {{"budget", CheckNonNegative, kOptional},
                {"held", ArrayOf<CheckHeld>},
                {"requests", CheckCount},
                {"passes_gate", CheckBool, kOptional}});
  if (spot.Member("held").Elements().empty()) spot.Member("held").Refuse("no context is there");
}

void CheckArm(const Spot& spot) {
  Closed(spot, {{"name", CheckText},
                {"method", CheckText},
                {"description", CheckText},
                {"clip", CheckBool},
                {"windows", CheckBool},
                {"null_control", CheckBool},
                {"bits_per_element", CheckBits},
                {"local", CheckMetrics},
                {"end_to_end", CheckMetrics, kOptional},
                {"text", CheckTextMetrics, kOptional},
                {"own_words", CheckTextMetrics, kOptional},
                {"needle", CheckNeedle, kOptional},
                {"tool_call", CheckToolCall, kOptional},
                {"reasoning", CheckReasoning, kOptional},
                {"ideal", CheckIdeal, kOptional},
                {"behind", CheckBehind, kOptional},
                {"by_domain", ArrayOf<CheckDomain>, kOptional},
                {"capacity", CheckArmCapacity, kOptional}});
}

// Losses of simulated runtimes are the differences of the arms' own numbers.
void CheckLosses(const Spot& arms) {
  const std::vector<Spot> all = arms.Elements();
  for (const Spot& arm : all) {
    if (!arm.Has("ideal")) continue;
    const Spot ideal = arm.Member("ideal");
    const std::string name = ideal.Member("arm").Text();
    const auto other = std::ranges::find_if(
        all, [&](const Spot& spot) { return spot.Member("name").Text() == name; });
    if (other == all.end() || &*other == &arm)
      ideal.Member("arm").Refuse(fmt::format("no other arm is named {}", Quoted(name)));
    const Json says = ToJson(ideal.value);
    if (const Json expected = RuntimeLoss(arm.value, other->value); says != expected)
      ideal.Refuse(fmt::format("says {}, the arms say {}", says.dump(), expected.dump()));
  }
}

}  // namespace

void CheckArms(const Spot& spot) {
  CheckElements(spot, CheckArm);
  CheckLosses(spot);
}

}  // namespace oscar
