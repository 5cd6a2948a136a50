// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/report_consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "capture/files/quote.h"
#include "export/report/quantile_names.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr double kRelative = 1e-6;  // sums of float32 values in float64, in another order
constexpr double kAbsolute = 1e-9;  // nats: rounding errors of values that should be zero

class Arms {
 public:
  Arms(const Json& report, std::string_view what)
      : what_(what), layers_(report.at("layers")), validation_(report.at("validation")) {}

  void Check() {
    const Json& arms = validation_.at("arms");
    const Json& settings = validation_.at("settings");
    Json names = Json::array();
    for (const Json& arm : arms) names.push_back(arm.at("name"));
    if (settings.contains("arms") && settings.at("arms") != names)
      Fail("settings", "arms", settings.at("arms").dump(), names.dump());
    const Json& headline = *std::ranges::find_if(arms, [&](const Json& arm) {  // see CheckReport
      return arm.at("name") == validation_.at("headline_arm");
    });
    for (const Json& arm : arms) {
      arm_ = arm.at("name");
      Name(arm);
      for (const char* member :
           {"local", "end_to_end", "text", "needle", "tool_call", "reasoning"}) {
        if (arm.contains(member) && !arms.front().contains(member))
          Fail("configuration " + arm_, member, "there", "that the reference also has it");
      }
      for (const char* member : {"local", "end_to_end"})
        if (arm.contains(member)) Metrics(member, arm.at(member), arms.front().at(member));
      if (arm.contains("text")) Text(arm.at("text"), arms.front().at("text"));
      if (arm.contains("needle")) Needle(arm.at("needle"), arms.front().at("needle"));
      if (arm.contains("reasoning")) Reasoning(arm.at("reasoning"), &arm == &arms.front());
      if (arm.contains("tool_call")) ToolCall(arm.at("tool_call"), &arm == &arms.front());
    }
    for (const Json& arm : arms) {  // relations between arms, after each arm was checked
      arm_ = arm.at("name");
      Behind(arm, headline, KlOf);
      Domains(arm, headline);
    }
    Data();
  }

 private:
  [[noreturn]] void Fail(const std::string& where, std::string_view member,
                         const std::string& found, const std::string& expected) const {
    throw InputError(fmt::format(
        "{}: the validation contradicts itself: {}: {} is {}, but its other numbers give {}", what_,
        Escaped(where), member, Escaped(found), Escaped(expected)));
  }

  void Expect(std::string_view member, double found, double expected) const {
    const double slack = kAbsolute + kRelative * std::max(std::abs(found), std::abs(expected));
    if (std::abs(found - expected) <= slack) return;
    Fail("configuration " + arm_, member, fmt::format("{}", found), fmt::format("{}", expected));
  }

  void ExpectSame(std::string_view member, const Json& found, const Json& expected) const {
    if (found != expected) Fail("configuration " + arm_, member, found.dump(), expected.dump());
  }

  void Name(const Json& arm) const {
    const std::string name = arm.at("name");
    for (const char* modifier : {"clip", "windows"}) {
      const bool named = name.find(std::string("+") + modifier) != name.npos;
      ExpectSame(modifier, arm.at(modifier), named);
    }
    ExpectSame("method", arm.at("method"), name.substr(0, name.find('+')));
  }

  // Returns a mean weighted by the counts in `count`.
  static double Mean(const Json& rows, const char* value, const char* count) {
    double sum = 0, all = 0;
    for (const Json& row : rows) {
      sum += row.at(value).get<double>() * row.at(count).get<double>();
      all += row.at(count).get<double>();
    }
    return all > 0 ? sum / all : 0;
  }

  void Order(const std::string& member, const Json& distribution) const {
    double last = -std::numeric_limits<double>::infinity();
    for (const NamedQuantile& quantile : kReportQuantiles) {
      if (!distribution.contains(quantile.name)) continue;
      const double value = distribution.at(quantile.name);
      if (value < last) Expect(member + "." + quantile.name, value, last);
      last = value;
    }
    const double mean = distribution.at("mean");
    if (mean > last) Expect(member + ".mean", mean, last);
  }

  void Metrics(const std::string& which, const Json& metrics, const Json& reference) const {
    Heads(which, metrics);
    if (&metrics == &reference) Expect(which + ".kl.mean", metrics.at("kl").at("mean"), 0);
    Order(which + ".kl", metrics.at("kl"));
    const Json& inside = metrics.at("inside_windows");
    const Json& beyond = metrics.at("beyond_windows");
    const Json& positions = metrics.at("by_position");
    const double all = metrics.at("kl_all");
    Expect(which + ".kl_all", all, Mean(Json{inside, beyond}, "kl", "rows"));
    Expect(which + ".kl_all", all, Mean(positions, "kl", "rows"));
    int64_t rows_at = 0;
    for (const Json& bucket : positions) rows_at += bucket.at("rows").get<int64_t>();
    ExpectSame(which + ".by_position, rows", rows_at,
               inside.at("rows").get<int64_t>() + beyond.at("rows").get<int64_t>());
    if (metrics.at("by_length").size() == 1)
      Expect(which + ".kl.mean", metrics.at("kl").at("mean"), metrics["by_length"][0].at("kl"));
    for (const char* count : {"rows", "inside_windows", "beyond_windows"}) {
      const auto rows = [&](const Json& of) {
        return of.at(count).is_object() ? of.at(count).at("rows") : of.at(count);
      };
      ExpectSame(which + "." + count, rows(metrics), rows(reference));
    }
  }

  // Checks means over heads and layers. All heads of a layer have the same rows, and all layers
  // have the same weight.
  void Heads(const std::string& which, const Json& metrics) const {
    const Json& heads = metrics.at("heads");
    Json ids = Json::array();
    for (const Json& layer : layers_) ids.push_back(layer.at("layer_id"));
    ExpectSame(which + ".heads.layer_ids", heads.at("layer_ids"), ids);
    double mean = 0, largest = 0;
    for (const Json& layer : heads.at("kl")) {
      if (layer.empty())
        Fail("configuration " + arm_, which + ".heads.kl", "empty", "a number for each KV head");
      for (const Json& kl : layer) {
        mean += kl.get<double>() / static_cast<double>(layer.size() * ids.size());
        largest = std::max(largest, kl.get<double>());
      }
    }
    Expect(which + ".kl.mean", metrics.at("kl").at("mean"), mean);
    const Json& worst = metrics.at("worst");
    Expect(which + ".worst.kl", worst.at("kl"), largest);
    const auto at = std::ranges::find(ids, worst.at("layer_id"));
    const Json layer =
        at == ids.end() ? Json::array() : heads.at("kl").at(static_cast<size_t>(at - ids.begin()));
    const auto head = worst.at("kv_head").get<size_t>();
    if (head >= layer.size())
      Fail("configuration " + arm_, which + ".worst", worst.dump(),
           "one of the values of its heads");
    Expect(which + ".worst.kl", worst.at("kl"), layer.at(head));
  }

  void Text(const Json& text, const Json& exact) const {
    ExpectSame("text.scored_tokens", text.at("scored_tokens"), exact.at("scored_tokens"));
    const double perplexity = text.at("perplexity"), of_exact = exact.at("perplexity");
    Expect("text.ppl_ratio", text.at("ppl_ratio"), perplexity / of_exact);
    Order("text.token_kl", text.at("token_kl"));
    if (text.contains("token_probability"))
      Order("text.token_probability", text.at("token_probability"));
    const double count = text.at("scored_tokens"), same = text.at("top1_agreement");
    if (std::abs(same * count - std::round(same * count)) > 1e-4)
      Fail("configuration " + arm_, "text.top1_agreement", fmt::format("{}", same),
           fmt::format("a whole number divided by {}", count));
    if (&text != &exact) return;
    Expect("text.token_kl.mean", text.at("token_kl").at("mean"), 0);
    Expect("text.top1_agreement", same, 1);
  }

  static double KlOf(const Json& arm, const std::string& member) {
    return arm.at(member).at(member == "local" ? "kl" : "token_kl").at("mean");
  }
  static double DomainKlOf(const Json& domain, const std::string& member) {
    return domain.at(member).at("mean");
  }

  // Checks the stored difference between the mean of an arm, or of one of its domains, and the
  // headline's.
  void Behind(const Json& of, const Json& headline,
              double (*mean)(const Json&, const std::string&)) const {
    if (!of.contains("behind")) return;
    for (const auto& [member, gap] : of.at("behind").items()) {
      if (!of.contains(member) || !headline.contains(member))
        Fail("configuration " + arm_, "behind." + member, "there",
             "that this configuration and the headline have it");
      Expect("behind." + member, gap.at("mean"), mean(of, member) - mean(headline, member));
    }
  }

  void Domains(const Json& arm, const Json& headline) const {
    const Json domains = arm.value("by_domain", Json::array()),
               others = headline.value("by_domain", Json::array());
    for (const char* member : {"local", "text"}) {
      Json rows = Json::array();
      for (const Json& domain : domains)
        if (domain.contains(member)) rows.push_back(domain.at(member));
      if (rows.empty() || !arm.contains(member)) continue;
      double count = 0;
      for (const Json& row : rows) count += row.at("rows").get<double>();
      const char* all = arm.at(member).contains("rows") ? "rows" : "scored_tokens";
      Expect(std::string("by_domain, rows of ") + member, count, arm.at(member).at(all));
      Expect(std::string("by_domain, mean of ") + member, Mean(rows, "mean", "rows"),
             KlOf(arm, member));
    }
    if (domains.size() != others.size())
      Fail("configuration " + arm_, "by_domain", fmt::format("{} domains", domains.size()),
           fmt::format("{}", others.size()));
    for (size_t i = 0; i < domains.size(); ++i) {
      ExpectSame("by_domain.domain", domains[i].at("domain"), others[i].at("domain"));
      Behind(domains[i], others[i], DomainKlOf);
    }
  }

  void Needle(const Json& needle, const Json& reference) const {
    for (const char* member : {"by_task", "by_length"}) {
      const Json& rows = needle.at(member);
      Expect("needle.accuracy", needle.at("accuracy"), Mean(rows, "accuracy", "samples"));
      int64_t samples = 0;
      for (const Json& row : rows) samples += row.at("samples").get<int64_t>();
      if (needle.contains("samples")) ExpectSame("needle.samples", needle.at("samples"), samples);
    }
    if (needle.contains("samples"))
      ExpectSame("needle.samples", needle.at("samples"), reference.value("samples", 0));
  }

  void ToolCall(const Json& tool_call, bool exact) const {
    const Json& rows = tool_call.at("by_task");
    Order("tool_call.token_kl", tool_call.at("token_kl"));
    const Json& mean = tool_call.at("token_kl").at("mean");
    Expect("tool_call.token_kl.mean", mean, exact ? 0 : Mean(rows, "token_kl", "tokens"));
    for (const char* member : {"samples", "tokens"}) {
      int64_t count = 0;
      for (const Json& row : rows) count += row.at(member).get<int64_t>();
      ExpectSame(std::string("tool_call.") + member, tool_call.at(member), count);
    }
  }

  void Reasoning(const Json& reasoning, bool exact) const {
    Order("reasoning.token_kl", reasoning.at("token_kl"));
    const double all = reasoning.at("tokens").get<double>() / reasoning.at("samples").get<double>();
    if (reasoning.at("tokens_until").get<double>() > all)
      Expect("reasoning.tokens_until", reasoning.at("tokens_until"), all);
    if (!exact) return;
    Expect("reasoning.token_kl.mean", reasoning.at("token_kl").at("mean"), 0);
    Expect("reasoning.tokens_until", reasoning.at("tokens_until"), all);
  }

  void Data() const {
    const Json& data = validation_.at("data");
    int64_t tokens = 0;
    for (const Json& text : data.at("texts")) {
      int64_t of_text = 0;
      if (__builtin_mul_overflow(text.at("length").get<int64_t>(),
                                 text.at("sequences").get<int64_t>(), &of_text) ||
          __builtin_add_overflow(tokens, of_text, &tokens))
        Fail("data", "tokens", data.at("tokens").dump(), "more than 64 bits can count");
    }
    if (data.at("tokens") != tokens)
      Fail("data", "tokens", data.at("tokens").dump(), std::to_string(tokens));
  }

  std::string_view what_;
  const Json& layers_;
  const Json& validation_;
  std::string arm_;
};

// Throws InputError unless every number of `summary.arms` is the mean over all layers (kl_max: the
// maximum).
void CheckSummaryAgrees(const Json& report, std::string_view what) {
  const Json& layers = report.at("layers");
  for (const auto& [name, summary] : report.at("summary").at("arms").items()) {
    for (const auto& [key, value] : summary.items()) {
      double mean = 0, largest = 0;
      for (const Json& layer : layers) {
        if (!layer.at("arms").contains(name)) continue;
        const double number = layer.at("arms").at(name).at(key);
        mean += number / static_cast<double>(layers.size());
        largest = std::max(largest, number);
      }
      const double expected = key == "kl_max" ? largest : mean, found = value;
      if (std::abs(found - expected) <= kAbsolute + kRelative * std::abs(expected)) continue;
      throw InputError(fmt::format(
          "{}: the report contradicts itself: summary of {}: {} is {}, but its layers give {}",
          what, Escaped(name), key, found, expected));
    }
  }
}

}  // namespace

void CheckNumbersAgree(const Json& report, std::string_view what) {
  CheckSummaryAgrees(report, what);
  if (report.contains("validation")) Arms(report, what).Check();
}

}  // namespace oscar
