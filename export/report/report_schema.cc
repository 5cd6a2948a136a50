// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What a report may hold, as tables; schema.md lists them as ReportMembers() writes them, and says
// what members mean.
#include "export/report/report_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "capture/files/quote.h"
#include "export/report/arm_schema.h"
#include "export/report/choice_schema.h"
#include "export/report/kernel_schema.h"
#include "export/report/schema_check.h"
#include "export/report/verdict_text.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// ---- what oscar-calibrate writes

void CheckSide(const Spot& spot) {
  Closed(spot, {{"num_rotations", CheckCount},
                {"dim", CheckCount},
                {"clip_ratio", CheckNumber},
                {"clip_error", ArrayOf<CheckNonNegative>, kOptional},
                {"clip_threshold", ArrayOf<CheckNonNegative>, kOptional},
                {"orthogonality", CheckNonNegative},
                {"float32_orthogonality", CheckNonNegative},
                {"eigen_residual", CheckNonNegative},
                {"min_relative_gap", CheckNumber},
                {"importance_max_over_mean", CheckNonNegative},
                {"spectrum", ArrayOf<CheckNumber>, kOptional},
                {"spectrum_ranks", ArrayOf<CheckCount>, kOptional}});
  if (spot.Has("spectrum") != spot.Has("spectrum_ranks"))
    spot.Refuse("\"spectrum\" and \"spectrum_ranks\" stand together or not at all");
  CheckSameSize(spot, "spectrum", "spectrum_ranks");
}

void CheckLayerArm(const Spot& spot) {
  Closed(spot, {{"rows", CheckNonNegative},  // a mean over layers in the summary
                {"rows_beyond", CheckNonNegative},
                {"kl_mean", CheckNumber},
                {"kl_mean_beyond", CheckNumber},
                {"kl_max", CheckNumber},
                {"output_rel_error", CheckNonNegative},
                {"output_rel_error_beyond", CheckNonNegative},
                {"kl_mean_no_windows", CheckNumber},
                {"output_rel_error_no_windows", CheckNonNegative}});
}

void CheckSides(const Spot& spot) {
  Closed(spot, {{"k", CheckSide},
                {"v", CheckSide},
                {"k_shared", CheckSide, kOptional},
                {"v_shared", CheckSide, kOptional}});
}

void CheckLayer(const Spot& spot) {
  Closed(spot, {{"layer_id", CheckCount},
                {"num_q_heads", CheckCount},
                {"num_kv_heads", CheckCount},
                {"head_dim", CheckCount},
                {"v_head_dim", CheckCount},
                {"tokens", CheckCount},
                {"sides", CheckSides},
                {"arms", MapOf<CheckLayerArm>},
                {"clip_candidates", ArrayOf<CheckNumber>, kOptional},
                {"auto", CheckLayerChoice, kOptional}});
  const auto size_of = [](const Spot& of, std::string_view list) {
    return of.Has(list) ? ElementsOf(of.Member(list).value).size() : 0;
  };
  const Spot sides = spot.Member("sides");
  const size_t candidates = size_of(spot, "clip_candidates");
  for (const auto& [name, value] : MembersOf(sides.value)) {
    const Spot side = sides.Member(name);
    if (const size_t points = size_of(side, "clip_error"); points != 0 && points != candidates) {
      side.Refuse(fmt::format("{} values of \"clip_error\" for {} \"clip_candidates\"", points,
                              candidates));
    }
  }
}

void CheckSummary(const Spot& spot) {
  Closed(spot, {{"layers", CheckCount},
                {"orthogonality", CheckNonNegative},
                {"float32_orthogonality", CheckNonNegative},
                {"eigen_residual", CheckNonNegative},
                {"min_relative_gap", CheckNumber},
                {"arms", MapOf<CheckLayerArm>}});
}

void CheckModel(const Spot& spot) {
  Open(spot, {{"id", CheckText, kOptional}, {"revision", CheckText, kOptional}});
}
void CheckCalibrationData(const Spot& spot) { Open(spot, {{"name", CheckText, kOptional}}); }
void CheckServing(const Spot& spot) {
  Open(spot, {{"k_clip_ratio", CheckNumber},
              {"v_clip_ratio", CheckNumber},
              {"k_clip_ratio_shared", CheckNumber},
              {"v_clip_ratio_shared", CheckNumber},
              {"sink_tokens", CheckCount, kOptional},
              {"recent_tokens", CheckCount, kOptional},
              {"quant_group_size", CheckCount, kOptional},
              {"auto", CheckServingChoice, kOptional},
              {"cache_types", CheckCacheTypes, kOptional},
              {"runtimes", ArrayOf<CheckServedRuntime>, kOptional},
              {"budgets", ArrayOf<CheckBudget>, kOptional}});
}

// ---- what oscar-validate adds

// A check whose metric was not measured has a reason instead of a value, and does not hold.
void CheckGateCheck(const Spot& spot) {
  Closed(spot, {{"metric", CheckText},
                {"op", CheckText},
                {"limit", CheckNumber},
                {"value", CheckNumber, kOptional},
                {"reason", CheckText, kOptional},
                {"passed", CheckBool}});
  if (spot.Has("value") == spot.Has("reason"))
    spot.Refuse("a check has either a \"value\" or a \"reason\" why there is none");
  const std::string op = spot.Member("op").Text();
  const double limit = spot.Member("limit").Number();
  bool holds = false;
  if (op != "<" && op != "<=" && op != ">" && op != ">=")
    spot.Member("op").Refuse(fmt::format("expected one of < <= > >=, found {}", Quoted(op, 20)));
  if (spot.Has("value")) {
    const double value = spot.Member("value").Number();
    holds = op == "<"    ? value < limit
            : op == "<=" ? value <= limit
            : op == ">"  ? value > limit
                         : value >= limit;
  }
  if (spot.Member("passed").True() != holds) {
    const Json check = ToJson(spot.value);
    spot.Member("passed").Refuse(fmt::format("says {}, but whether {} {} {} is {}", !holds,
                                             check.value("value", Json("nothing")).dump(), op,
                                             check.at("limit").dump(), holds));
  }
}

void CheckGate(const Spot& spot) {
  Closed(spot, {{"text", CheckText},
                {"arm", CheckText},
                {"passed", CheckBool},
                {"checks", ArrayOf<CheckGateCheck>}});
  const std::vector<Spot> checks = spot.Member("checks").Elements();
  const bool all =
      std::ranges::all_of(checks, [](const Spot& check) { return check.Member("passed").True(); });
  if (checks.empty()) spot.Member("checks").Refuse("a gate without checks");
  if (spot.Member("passed").True() != all)
    spot.Member("passed").Refuse(fmt::format("says {}, its checks say {}", !all, all));
}

void CheckTextLengths(const Spot& spot) {
  Closed(spot, {{"length", CheckCount}, {"sequences", CheckCount}});
}
void CheckOverlap(const Spot& spot) { Open(spot, {{"fraction", CheckFraction}}); }
void CheckValidationData(const Spot& spot) {
  Open(spot, {{"name", CheckText},
              {"digest", CheckText, kOptional},
              {"tokens", CheckCount},
              {"scored_words", CheckCount, kOptional},
              {"scored_bytes", CheckCount, kOptional},
              {"texts", ArrayOf<CheckTextLengths>},
              {"overlap", CheckOverlap, kOptional}});
}
void CheckSettings(const Spot& spot) {
  Open(spot, {{"sink_tokens", CheckCount},
              {"recent_tokens", CheckCount},
              {"quant_group_size", CheckCount, kOptional},
              {"cache_dtype", CheckText, kOptional},
              {"compute_dtype", CheckText, kOptional},
              {"measure_dtype", CheckText, kOptional},
              {"seed", CheckCount, kOptional},
              {"bootstrap", CheckCount, kOptional},
              {"weights_read", CheckNonNegative, kOptional},
              {"scope", CheckText, kOptional},
              {"left_out", CheckText, kOptional},
              {"arms", ArrayOf<CheckText>, kOptional}});
}

// Drawn by the model; none were, and why.
void CheckOwnWords(const Spot& spot) {
  Open(spot, {{"sequences", CheckCount},
              {"length", CheckCount, kOptional},
              {"scored_words", CheckCount, kOptional},
              {"scored_bytes", CheckCount, kOptional},
              {"seed", CheckCount, kOptional},
              {"digest", CheckText, kOptional},
              {"reason", CheckText, kOptional}});
}
void CheckVerdictText(const Spot& spot) {
  Closed(spot,
         {{"member", CheckText}, {"perplexity_ratio", CheckNonNegative}, {"reason", CheckText}});
  const Spot member = spot.Member("member");
  const std::string text = member.Text();
  if (text != "text" && text != "own_words") member.Refuse(R"(expected "text" or "own_words")");
  if (text == "own_words" && spot.Member("perplexity_ratio").Number() <= kForeignText)
    member.Refuse("the text is not foreign to the model, so that the verdict rests on it");
}
void CheckRecallTask(const Spot& spot) {
  Closed(spot, {{"task", CheckText},
                {"length", CheckCount},
                {"samples", CheckCount},
                {"exact", CheckFraction},
                {"counts", CheckBool}});
}
void CheckRecall(const Spot& spot) {
  Closed(spot, {{"measurable", CheckBool}, {"tasks", ArrayOf<CheckRecallTask>}});
}

void CheckDistance(const Spot& spot) {
  Closed(spot, {{"from", CheckCount, kOptional},
                {"to", CheckCount, kOptional},
                {"mass", CheckNonNegative},
                {"kl", CheckNumber}});
}
void CheckByDistance(const Spot& spot) {
  Closed(spot,
         {{"buckets", ArrayOf<CheckDistance>}, {"attention_sinks", CheckDistance, kOptional}});
}

void CheckCapacity(const Spot& spot) {
  Closed(
      spot,
      {{"device_bytes", CheckCount}, {"weight_bytes", CheckCount}, {"request_tokens", CheckCount}});
}

void CheckValidation(const Spot& spot) {
  Closed(spot, {{"rotations", CheckAnyObject},
                {"model", CheckModel, kOptional},
                {"source", CheckText},
                {"data", CheckValidationData},
                {"program", CheckAnyObject},
                {"machine", CheckAnyObject},
                {"settings", CheckSettings},
                {"headline_arm", CheckText},
                {"own_words", CheckOwnWords, kOptional},
                {"verdict_text", CheckVerdictText, kOptional},
                {"by_distance", CheckByDistance, kOptional},
                {"recall", CheckRecall, kOptional},
                {"tool_call", CheckRecall, kOptional},
                {"gate", CheckGate, kOptional},
                {"kernels", CheckKernels, kOptional},
                {"capacity", CheckCapacity, kOptional},
                {"arms", CheckArms}});
  if (const std::string source = spot.Member("source").Text();
      source != "model" && source != "dump") {
    spot.Member("source").Refuse(
        fmt::format("expected \"model\" or \"dump\", found {}", Quoted(source, 40)));
  }
  std::set<std::string> names;
  for (const Spot& arm : spot.Member("arms").Elements()) {
    const Spot name = arm.Member("name");
    if (!names.insert(name.Text()).second)
      name.Refuse(fmt::format("a second arm named {}", Quoted(name.Text())));
  }
  const auto must_be_an_arm = [&](const Spot& name) {
    if (!names.contains(name.Text()))
      name.Refuse(fmt::format("no arm is named {}", Quoted(name.Text())));
  };
  must_be_an_arm(spot.Member("headline_arm"));
  if (spot.Has("gate")) must_be_an_arm(spot.Member("gate").Member("arm"));
}

void CheckName(const Spot& spot) { Closed(spot, {{"name", CheckText}, {"version", CheckCount}}); }

void CheckDocument(const Spot& spot) {
  Closed(spot, {{"$schema", CheckName},
                {"model", CheckModel},
                {"data", CheckCalibrationData},
                {"calibration", CheckAnyObject},
                {"serving", CheckServing},
                {"summary", CheckSummary},
                {"layers", ArrayOf<CheckLayer>},
                {"validation", CheckValidation, kOptional}});
}

void CheckRoot(const Spot& root) {
  const auto is_report = [&] {
    if (!root.value.is_object() || !root.Has("$schema")) return false;
    const Spot schema = root.Member("$schema");
    return schema.value.is_object() && schema.Has("name") &&
           schema.Member("name").value.is_string() && schema.Member("name").Text() == kReportSchema;
  };
  if (!is_report()) {
    throw InputError(
        fmt::format("{}: not a report: expected \"$schema\": {{\"name\": \"{}\", \"version\": {}}}",
                    root.what, kReportSchema, kReportVersion));
  }
  const Spot schema = root.Member("$schema");
  CheckName(schema);
  const uint64_t version = schema.Member("version").Count();
  if (version < 1 || version > kReportVersion) {
    schema.Member("version").Refuse(
        fmt::format("this program reads versions 1 to {}, found {}: try a newer oscar",
                    kReportVersion, version));
  }
  CheckDocument(root);
  if (version < 2 && root.Has("validation"))
    root.Member("validation").Refuse("version 1 has no such member; version 2 does");
}

}  // namespace

std::string ReportMembers() {
  std::string text;
  for (const Outline::Line& line : OutlineOf(CheckDocument).lines) {
    const auto depth = static_cast<size_t>(std::ranges::count(line.pointer, '/')) - 1;
    const std::string name = line.pointer.substr(line.pointer.rfind('/') + 1);
    text += fmt::format("{}- `{}`{}: {}\n", std::string(2 * depth, ' '), name,
                        line.optional ? " (opt)" : "", line.type);
  }
  return text;
}

void CheckReport(const Json& report, std::string_view what) {
  CheckReport(JsonText(report, what).root(), what);
}

void CheckReport(const JsonElement& report, std::string_view what) {
  try {
    return CheckRoot({report, "", what, nullptr, /*traced=*/false});
  } catch (const InputError&) {
  }
  CheckRoot({report, "", what});  // throws again, and says where
}

}  // namespace oscar
