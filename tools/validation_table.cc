// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validation_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "export/report/verdict.h"
#include "export/validate/arm.h"
#include "tools/cli/text_table.h"

namespace oscar {
namespace {

struct Column {
  const char* heading;
  const char* member;  // JSON pointer in an arm
  const char* format;
};
constexpr Column kColumns[] = {
    {">KL local", "/local/kl/mean", "{:.4f}"},
    {">KL end to end", "/end_to_end/kl/mean", "{:.4f}"},
    {">output error", "/local/output_rel_error", "{:.4f}"},
    {">perplexity", "/text/perplexity", "{:.4f}"},
    {">ratio", "/text/ppl_ratio", "{:.4f}"},
    {">token KL", "/text/token_kl/mean", "{:.4f}"},
    {">top-1", "/text/top1_agreement", "{:.4f}"},
    {">own words: ratio", "/own_words/ppl_ratio", "{:.4f}"},
    {">token KL", "/own_words/token_kl/mean", "{:.4f}"},
    {">top-1", "/own_words/top1_agreement", "{:.4f}"},
    {">recall", "/needle/accuracy", "{:.3f}"},
    {">tool calls", "/tool_call/accuracy", "{:.3f}"},
    {">argument KL", "/tool_call/token_kl/mean", "{:.4f}"},
    {">departs after", "/reasoning/tokens_until", "{:.1f}"},
    {">continuation KL", "/reasoning/token_kl/mean", "{:.4f}"},
    {">bits", "/bits_per_element/paper", "{:.2f}"},
    {">stored bits", "/bits_per_element/actual", "{:.2f}"},
};
constexpr Column kSummaryColumns[] = {
    {">bits", "/bits_per_element/paper", "{:.2f}"},
    {">attention-KL", "/local/kl/mean", "{:.4f}"},
    {">own words: perplexity ratio", "/own_words/ppl_ratio", "{:.3f}"},
    {">same next token", "/own_words/top1_agreement", "{:.3f}"},
    {">text: perplexity ratio", "/text/ppl_ratio", "{:.3f}"},
    {">recall", "/needle/accuracy", "{:.3f}"},
    {">tool calls", "/tool_call/accuracy", "{:.3f}"},
    {">argument KL", "/tool_call/token_kl/mean", "{:.4f}"},
    {">departs after", "/reasoning/tokens_until", "{:.1f}"},
    {">continuation KL", "/reasoning/token_kl/mean", "{:.4f}"},
};

// What an arm of a default comparison is to a reader; the headline's row is "this artifact".
struct Role {
  const char* arm;
  const char* words;
};
constexpr Role kRoles[] = {
    {"bf16", "exact"},
    {"naive", "2 bits, nothing else"},
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

// `rows`: the words in front, and the arm.
std::string Render(const std::vector<std::string>& words_heading, std::span<const Column> columns,
                   const std::vector<std::pair<std::vector<std::string>, const Json*>>& rows) {
  std::vector<std::string> headings = words_heading;
  std::vector<const Column*> shown;  // those that some arm has
  for (const Column& column : columns) {
    const Json::json_pointer member(column.member);
    if (std::ranges::none_of(rows, [&](const auto& row) { return row.second->contains(member); }))
      continue;
    shown.push_back(&column);
    headings.emplace_back(column.heading);
  }
  TextTable table(headings);
  for (const auto& [words, arm] : rows) {
    std::vector<std::string> cells = words;
    for (const Column* column : shown) {
      const Json::json_pointer member(column->member);
      cells.push_back(arm->contains(member)
                          ? fmt::format(fmt::runtime(column->format), arm->at(member).get<double>())
                          : "");
    }
    table.AddRow(cells);
  }
  return table.ToString();
}

// Which text is which, and where the verdict rests.
std::string TextLines(const Json& validation) {
  const Json& exact = validation.at("arms").at(0);
  if (!exact.contains("text")) return {};
  const auto perplexity = [&](const char* text) {
    return exact.at(text).at("perplexity").get<double>();
  };
  std::string lines =
      fmt::format("text: {}, perplexity {:.2f}\n",
                  validation.at("data").at("name").get<std::string>(), perplexity("text"));
  if (!exact.contains("own_words")) return lines;
  const Json& own = validation.at("own_words");
  lines += fmt::format(
      "own words: {} sequences of {} tokens drawn by the model, perplexity {:.2f}\n",
      own.at("sequences").get<int64_t>(), own.at("length").get<int64_t>(), perplexity("own_words"));
  const Json& verdict = validation.at("verdict_text");
  if (verdict.at("member") == "own_words") {
    lines += fmt::format("the verdict rests on the model's own words: {}\n",
                         verdict.at("reason").get<std::string>());
  }
  return lines;
}

// `member`: of the validation, "recall" or "tool_call"; `name`: what a reader calls it.
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
        "{} cannot be measured on this model: with its cache untouched it finds fewer than 9 "
        "answers of 10 in every task ({})\n",
        name, left_out);
  }
  return fmt::format("{}: {}{}\n", name, counted,
                     left_out.empty() ? ""
                                      : "; not counted, as the exact model finds fewer than 9 "
                                        "answers of 10 itself: " +
                                            left_out);
}

// "KL by distance to the key: 0-63 0.0310 (52 % of attention), ...": of what holds a hundredth.
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

std::string GateLines(const Json& gate) {
  std::string lines;
  for (const Json& check : gate.at("checks")) {
    lines +=
        fmt::format("gate: {} {} {}: {} ({})\n", check.at("metric").get<std::string>(),
                    check.at("op").get<std::string>(), check.at("limit").get<double>(),
                    check.at("passed").get<bool>() ? "passed" : "FAILED",
                    check.contains("value") ? fmt::format("{:.6g}", check.at("value").get<double>())
                                            : check.value("reason", "not measured"));
  }
  return lines;
}

std::string KernelLines(const Json& kernels) {
  const auto count = [&](const char* key) { return kernels.at(key).get<int64_t>(); };
  return fmt::format(
      "kernels: {}: {} codes, {} differ from the codec, with {} scales or zeros, {} values from "
      "the simulator; attention output off by {:.2g} from its own cache, {:.4f} in all\n",
      kernels.at("passed").get<bool>() ? "passed" : "FAILED", count("codes"),
      count("differing_codes"), count("differing_metadata"), count("differing_simulated"),
      kernels.at("kernel_error").get<double>(), kernels.at("total_error").get<double>());
}

std::string LinesBelow(const Json& validation) {
  const Verdict verdict = VerdictOf(validation);
  return verdict.fit + "\n" + (verdict.notice.empty() ? "" : verdict.notice + "\n") +
         TextLines(validation) + DistanceLines(validation) +
         RecallLines(validation, "recall", "recall") +
         RecallLines(validation, "tool_call", "exact match of tool calls") +
         (validation.contains("gate") ? GateLines(validation.at("gate")) : "") +
         (validation.contains("kernels") ? KernelLines(validation.at("kernels")) : "");
}

}  // namespace

std::string RenderValidation(const Json& validation) {
  std::vector<std::pair<std::vector<std::string>, const Json*>> rows;
  for (const Json& arm : validation.at("arms"))
    rows.push_back({{arm.at("name").get<std::string>()}, &arm});
  return Render({"arm"}, kColumns, rows) + LinesBelow(validation);
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
  return Render({"cache", "arm"}, kSummaryColumns, rows) +
         (more == 0 ? "" : fmt::format("{} more arms are in the report\n", more)) +
         LinesBelow(validation);
}

Json ValidationSummary(const Json& validation) {
  Json arms = Json::array();
  for (const Json& arm : validation.at("arms")) {
    Json summary = {{"name", arm.at("name")}};
    for (const Column& column : kColumns) {
      const Json::json_pointer member(column.member);
      if (arm.contains(member)) summary[member] = arm.at(member);
    }
    arms.push_back(std::move(summary));
  }
  return {{"headline_arm", validation.value("headline_arm", "")},
          {"gate", validation.value("gate", Json())},
          {"arms", arms}};
}

std::string RenderMethods() {
  TextTable table({"method", "as published", "what it is"});
  for (const CacheMethod& method : CacheMethods()) {
    table.AddRow({std::string(method.name),
                  PublishedArm(method.name).name.substr(method.name.size()),
                  std::string(method.description)});
  }
  return table.ToString();
}

}  // namespace oscar
