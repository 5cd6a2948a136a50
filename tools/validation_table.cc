// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See validation_table.h.
#include "tools/validation_table.h"

#include <fmt/format.h>

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
    {">needle", "/needle/accuracy", "{:.3f}"},
    {">bits", "/bits_per_element/paper", "{:.2f}"},
    {">stored bits", "/bits_per_element/actual", "{:.2f}"},
};

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

}  // namespace

std::string RenderValidation(const Json& validation) {
  std::vector<std::string> headings = {"arm"};
  const Json& arms = validation.at("arms");
  std::vector<const Column*> columns;  // those that some arm has
  for (const Column& column : kColumns) {
    for (const Json& arm : arms) {
      if (!arm.contains(Json::json_pointer(column.member))) continue;
      columns.push_back(&column);
      headings.emplace_back(column.heading);
      break;
    }
  }
  TextTable table(headings);
  for (const Json& arm : arms) {
    std::vector<std::string> row = {arm.at("name").get<std::string>()};
    for (const Column* column : columns) {
      const Json::json_pointer member(column->member);
      row.push_back(arm.contains(member)
                        ? fmt::format(fmt::runtime(column->format), arm.at(member).get<double>())
                        : "");
    }
    table.AddRow(row);
  }
  const Verdict verdict = VerdictOf(Record(validation));
  return table.ToString() + verdict.fit + "\n" +
         (verdict.notice.empty() ? "" : verdict.notice + "\n") +
         (validation.contains("gate") ? GateLines(validation.at("gate")) : "") +
         (validation.contains("kernels") ? KernelLines(validation.at("kernels")) : "");
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
