// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/validation_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "export/evaluate/gate.h"
#include "export/measures/table.h"
#include "export/report/capacity.h"
#include "export/report/verdict.h"
#include "export/report/verdict_text.h"
#include "export/simulate/runtime_cache.h"
#include "export/validate/arm.h"
#include "tools/cli/text_table.h"

namespace oscar {
namespace {

// The measures in a summary, with the heading if it differs from the usual one.
constexpr std::pair<std::string_view, std::string_view> kSummary[] = {
    {"stored_bits", ""},
    {"kl", ""},
    {"own_ppl_ratio", "own words: perplexity ratio"},
    {"own_top1_agreement", "same next token"},
    {"ppl_ratio", "text: perplexity ratio"},
    {"needle", ""},
    {"tool_call", ""},
    {"tool_call_kl", ""},
    {"divergence", ""},
    {"reasoning_kl", ""},
};

// Describes the role of an arm in a default comparison; the headline's row is "this artifact".
struct Role {
  const char* arm;
  const char* words;
};
constexpr Role kRoles[] = {
    {"bf16", "exact"},
    {"naive", "plain 2 bits"},
    {"hadamard+clip+windows", "Hadamard rotation"},
    {"oscar_shared+clip+windows", "OSCAR as published"},
    {"", "this artifact"},
    {"random_rotation+clip+windows", "random rotation (null control)"},
};

const Json* FindArm(const Json& validation, std::string_view name) {
  for (const Json& arm : validation.at("arms"))
    if (arm.at("name") == name) return &arm;
  return nullptr;
}

// Returns the member of an arm that decides the verdict: that of a text, or for a dump that of the
// attention error.
std::string MemberOfVerdict(const Json& validation) {
  if (!validation.at("arms").at(0).contains("text")) return "local";
  return validation.value("/verdict_text/member"_json_pointer, std::string("text"));
}

// Formats an estimate like "0.0030 (0.0012 to 0.0050)".
std::string EstimateText(const Json& estimate) {
  const auto mean = fmt::format("{:.4f}", estimate.at("mean").get<double>());
  if (!estimate.contains("interval")) return mean;
  return fmt::format("{} ({:.4f} to {:.4f})", mean, estimate.at("interval").at(0).get<double>(),
                     estimate.at("interval").at(1).get<double>());
}

// Returns the difference between the KLs of an arm and of the headline on the same text.
std::string BehindText(const Json& arm, const std::string& member) {
  const Json::json_pointer at("/behind/" + member);
  if (!arm.contains(at)) return "";
  return EstimateText(arm.at(at));
}

// `rows`: the cells before the numbers, and the arm; `on`: see MemberOfVerdict.
std::string Render(const std::vector<std::string>& words_heading, std::vector<Measure> columns,
                   const std::vector<std::pair<std::vector<std::string>, const Json*>>& rows,
                   const std::string& on) {
  std::vector<std::string> headings = words_heading;
  std::erase_if(columns, [&](const Measure& column) {
    return std::ranges::all_of(
        rows, [&](const auto& row) { return FindAt(*row.second, column.path) == nullptr; });
  });
  for (const Measure& column : columns) headings.push_back(fmt::format(">{}", column.heading));
  headings.emplace_back(on == "local" ? ">attention-KL minus the headline's"
                                      : ">next-token KL minus the headline's");
  TextTable table(headings);
  for (const auto& [words, arm] : rows) {
    std::vector<std::string> cells = words;
    for (const Measure& column : columns) cells.push_back(TextOf(column, *arm));
    cells.push_back(BehindText(*arm, on));
    table.AddRow(cells);
  }
  return table.ToString();
}

// Returns a table of the choice at each bit budget and of the cache types of released servers. The
// other arms are only in the HTML report.
std::string BudgetTable(const Json& validation, const std::string& on) {
  if (!validation.contains("capacity")) return {};
  const auto request_tokens = validation.at("capacity").at("request_tokens").get<int64_t>();
  std::vector<std::string> headings = {"configuration", fmt::format(">bits at {}", request_tokens),
                                       ">next-token KL"};
  for (const Json& held : validation.at("arms").at(0).at("capacity").at("held"))
    headings.push_back(fmt::format(">GB at {}", held.at("tokens").get<int64_t>()));
  headings.push_back(fmt::format(">requests of {} on {:g} GB", request_tokens,
                                 validation.at("capacity").at("device_bytes").get<double>() / 1e9));
  TextTable table(headings);
  bool any = false;
  for (const Json& arm : validation.at("arms")) {
    const Json& capacity = arm.at("capacity");
    const bool released = FindReleasedType(arm.at("method").get<std::string>()) != nullptr;
    if ((!released && !capacity.contains("budget")) || !arm.contains(on)) continue;
    std::vector<std::string> cells = {arm.at("name").get<std::string>()};
    for (const Json& held : capacity.at("held"))
      if (held.at("tokens") == request_tokens)
        cells.push_back(fmt::format("{:.2f}", held.at("bits").get<double>()));
    cells.push_back(EstimateText(arm.at(on).at("token_kl")));
    for (const Json& held : capacity.at("held"))
      cells.push_back(fmt::format("{:.3g}", held.at("bytes").get<double>() / 1e9));
    cells.push_back(capacity.at("requests").dump());
    table.AddRow(cells);
    any = true;
  }
  return any ? "cost and size at each number of bits:\n" + table.ToString() : "";
}

// Returns a table of the headline's results on each domain of the text, next to those of other
// arms.
std::string DomainTable(const Json& validation) {
  const Json* headline = FindArm(validation, validation.at("headline_arm").get<std::string>());
  if (headline == nullptr || !headline->contains("by_domain")) return {};
  const bool text = headline->contains("text");
  const char* member = text ? "text" : "local";
  std::vector<std::string> headings = {"domain", ">rows", ">attention-KL"};
  if (text) headings.insert(headings.end(), {">tokens", ">next-token KL"});
  std::vector<const Json*> others;
  for (const Role& role : kRoles) {
    const Json* arm = FindArm(validation, role.arm);
    if (arm == nullptr || arm == headline || arm->at("method") == "bf16") continue;
    others.push_back(arm);
    headings.push_back(std::string(">") + role.words);
  }
  TextTable table(headings);
  const auto number = [](const Json& of, const char* which) {
    return of.contains(which) ? fmt::format("{:.4f}", of.at(which).at("mean").get<double>())
                              : std::string("-");
  };
  for (size_t i = 0; i < headline->at("by_domain").size(); ++i) {
    const Json& domain = headline->at("by_domain").at(i);
    std::vector<std::string> cells = {domain.at("domain").get<std::string>()};
    for (const char* which : {"local", "text"}) {
      if (!text && which == std::string_view("text")) continue;
      cells.push_back(domain.contains(which) ? domain.at(which).at("rows").dump() : "0");
      cells.push_back(number(domain, which));
    }
    for (const Json* other : others) cells.push_back(number(other->at("by_domain").at(i), member));
    table.AddRow(cells);
  }
  return fmt::format("{} by domain of the text, with the {} of other configurations:\n{}",
                     headline->at("name").get<std::string>(),
                     text ? "next-token KL" : "attention-KL", table.ToString());
}

// Explains the texts and says which one decides the verdict.
std::string TextLines(const Json& validation) {
  const Json& exact = validation.at("arms").at(0);
  if (!exact.contains("text")) return {};
  const auto perplexity = [&](const char* text) {
    return exact.at(text).at("perplexity").get<double>();
  };
  std::string lines =
      fmt::format("text: {}, perplexity {:.2f}\n",
                  validation.at("data").at("name").get<std::string>(), perplexity("text"));
  if (!exact.contains("own_words")) {
    if (validation.contains("/own_words/reason"_json_pointer)) {
      lines += fmt::format("own words: not measured: {}\n",
                           validation.at("own_words").at("reason").get<std::string>());
    }
    return lines;
  }
  const Json& own = validation.at("own_words");
  lines += fmt::format(
      "own words: {} sequences of {} tokens generated by the model, perplexity {:.2f}\n",
      own.at("sequences").get<int64_t>(), own.at("length").get<int64_t>(), perplexity("own_words"));
  const Json& verdict = validation.at("verdict_text");
  if (verdict.at("member") == "own_words") {
    lines += fmt::format("the verdict is based on the model's own words: {}\n",
                         verdict.at("reason").get<std::string>());
  }
  return lines;
}

// `member`: "recall" or "tool_call" of the validation. `name`: its name for readers.
std::string RecallLines(const Json& validation, const char* member, const char* name) {
  if (!validation.contains(member)) return {};
  std::string counted, left_out;
  for (const Json& task : validation.at(member).at("tasks")) {
    std::string& list = task.at("counts").get<bool>() ? counted : left_out;
    list += fmt::format("{}{} at {}", list.empty() ? "" : ", ", task.at("task").get<std::string>(),
                        task.at("length").get<int64_t>());
  }
  if (counted.empty()) {
    return fmt::format(
        "{} cannot be measured on this model: even with an exact cache it gives fewer than 9 of 10 "
        "answers in every task ({})\n",
        name, left_out);
  }
  return fmt::format(
      "{}: {}{}\n", name, counted,
      left_out.empty()
          ? ""
          : "; not counted, because even the exact model gives fewer than 9 of 10 answers: " +
                left_out);
}

// Returns a line like "attention-KL by distance to the key (share of attention): 0-63 0.0310 (52
// %), ...". Leaves out buckets with less than 1 % of the attention.
std::string DistanceLines(const Json& validation) {
  if (!validation.contains("by_distance")) return {};
  std::string buckets;
  for (const Json& bucket : validation.at("by_distance").at("buckets")) {
    const double mass = bucket.at("mass");
    if (mass < 0.01) continue;
    const int64_t from = bucket.at("from");
    buckets += fmt::format("{}{} {:.4f} ({:.0f} %)", buckets.empty() ? "" : ", ",
                           bucket.contains("to")
                               ? fmt::format("{}-{}", from, bucket.at("to").get<int64_t>() - 1)
                               : fmt::format("{} on", from),
                           bucket.at("kl").get<double>(), 100 * mass);
  }
  return fmt::format("attention-KL by distance to the key (share of attention): {}\n", buckets);
}

// Says which arm the gate judges, and which simulated servers would fail it.
std::string GateLines(const Json& validation) {
  const Json& gate = validation.at("gate");
  const std::string judged = gate.at("arm");
  std::string lines, failing;
  for (const Json& check : gate.at("checks")) {
    lines +=
        fmt::format("gate: {} {} {} for {}: {} ({})\n", check.at("metric").get<std::string>(),
                    check.at("op").get<std::string>(), check.at("limit").get<double>(), judged,
                    check.at("passed").get<bool>() ? "passed" : "FAILED",
                    check.contains("value") ? fmt::format("{:.6g}", check.at("value").get<double>())
                                            : check.value("reason", "not measured"));
  }
  const Gate limits = ParseGate(gate.at("text").get<std::string>());
  for (const Json& arm : validation.at("arms")) {
    const auto loads = [&](const RuntimeSpec& runtime) {
      return arm.at("method") == runtime.method;
    };
    const std::string name = arm.at("name");
    if (name == judged || std::ranges::none_of(Runtimes(), loads)) continue;
    if (!EvaluateGate(limits, ArmOfVerdict(validation, arm)).passed)
      failing += (failing.empty() ? "" : ", ") + name;
  }
  if (!failing.empty()) {
    lines += fmt::format(
        "gate: {} alone is judged; it would FAIL for {} (--headline-arm judges another)\n", judged,
        failing);
  }
  return lines;
}

std::string KernelLines(const Json& kernels) {
  const auto count = [&](const char* key) { return kernels.at(key).get<int64_t>(); };
  return fmt::format(
      "kernels: {}: {} codes, of which {} differ from the codec; also {} scales or zeros, and {} "
      "values differ from the simulator; the relative error of the attention output is {:.2g} "
      "against float64 attention over the same cache, and {:.4f} against exact keys and values\n",
      kernels.at("passed").get<bool>() ? "passed" : "FAILED", count("codes"),
      count("differing_codes"), count("differing_metadata"), count("differing_simulated"),
      kernels.at("kernel_error").get<double>(), kernels.at("total_error").get<double>());
}

// Returns a line like "measured where a query sees a quantized key: 1120 query rows of attention,
// 18426 next tokens of the text".
std::string RowLines(const Json& validation) {
  const Json& exact = validation.at("arms").at(0);
  std::string rows =
      fmt::format("{} query rows of attention", exact.at("local").at("rows").get<int64_t>());
  for (const auto& [member, name] :
       {std::pair("text", "the text"), std::pair("own_words", "its own words")}) {
    if (!exact.contains(member)) continue;
    rows += fmt::format(", {} next tokens of {}",
                        exact.at(member).at("scored_tokens").get<int64_t>(), name);
  }
  return fmt::format("measured where a query sees a quantized key: {}\n", rows);
}

std::string LinesBelow(const Json& validation) {
  const Verdict verdict = VerdictOf(validation);
  std::string lines =
      BudgetTable(validation, MemberOfVerdict(validation)) + DomainTable(validation);
  for (const std::string& sentence :
       {verdict.fit, verdict.domains, verdict.notice, verdict.caution, verdict.left_out})
    lines += sentence.empty() ? "" : sentence + "\n";
  return lines + RowLines(validation) + TextLines(validation) + DistanceLines(validation) +
         RecallLines(validation, "recall", "recall") +
         RecallLines(validation, "tool_call", "exact match of tool calls") +
         (validation.contains("gate") ? GateLines(validation) : "") +
         (verdict.remedy.empty() ? "" : verdict.remedy + "\n") +
         (validation.contains("kernels") ? KernelLines(validation.at("kernels")) : "");
}

}  // namespace

std::string RenderValidation(const Json& validation) {
  std::vector<std::pair<std::vector<std::string>, const Json*>> rows;
  for (const Json& arm : validation.at("arms"))
    rows.push_back({{arm.at("name").get<std::string>()}, &arm});
  return Render({"configuration"}, Measures(kTerminal), rows, MemberOfVerdict(validation)) +
         LinesBelow(validation);
}

std::string RenderSummary(const Json& validation) {
  const std::string headline = validation.at("headline_arm");
  std::vector<std::pair<std::vector<std::string>, const Json*>> rows;
  for (const Role& role : kRoles) {
    const std::string name = *role.arm == '\0' ? headline : role.arm;
    if (*role.arm != '\0' && name == headline) continue;
    if (const Json* arm = FindArm(validation, name)) rows.push_back({{role.words, name}, arm});
  }
  const size_t more = validation.at("arms").size() - rows.size();
  std::vector<Measure> columns;
  for (const auto& [name, heading] : kSummary) {
    columns.push_back(MeasureNamed(name));
    if (!heading.empty()) columns.back().heading = heading;
  }
  return Render({"cache", "configuration"}, std::move(columns), rows, MemberOfVerdict(validation)) +
         (more == 0 ? "" : fmt::format("{} more configurations are in the report\n", more)) +
         LinesBelow(validation);
}

Json ValidationSummary(const Json& validation) {
  Json arms = Json::array();
  for (const Json& arm : validation.at("arms")) {
    Json summary = {{"name", arm.at("name")}};
    for (const Measure& measure : Measures()) {
      std::string pointer = fmt::format("/{}", measure.path);
      std::ranges::replace(pointer, '.', '/');
      if (const Json* value = FindAt(arm, measure.path))
        summary[Json::json_pointer(pointer)] = *value;
    }
    arms.push_back(std::move(summary));
  }
  return {{"headline_arm", validation.value("headline_arm", "")},
          {"gate", validation.value("gate", Json())},
          {"arms", arms}};
}

std::string RenderMethods() {
  TextTable table({"method", "as published", "description"});
  for (const CacheMethod& method : CacheMethods()) {
    table.AddRow({std::string(method.name),
                  PublishedArm(method.name).name.substr(method.name.size()),
                  std::string(method.description)});
  }
  return table.ToString();
}

}  // namespace oscar
