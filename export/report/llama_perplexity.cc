// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Labels and columns are those of llama.cpp's tools/perplexity/perplexity.cpp, for programs that
// parse them.
#include "export/report/llama_perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "export/report/lm_eval_results.h"  // ModelWithCache, SameTopError

namespace oscar {
namespace {

struct QuantileLine {
  const char* label;
  const char* member;
};
constexpr QuantileLine kKlLines[] = {
    {"Maximum", "max"}, {"99.9%  ", "p99_9"},  {"99.0%  ", "p99"}, {"95.0%  ", "p95"},
    {"90.0%  ", "p90"}, {"Median ", "median"}, {"10.0%  ", "p10"}, {" 5.0%  ", "p5"},
    {" 1.0%  ", "p1"},  {" 0.1%  ", "p0_1"},   {"Minimum", "min"}};
constexpr QuantileLine kProbabilityLines[] = {
    {"Maximum", "max"}, {"99.9%  ", "p99_9"}, {"99.0%  ", "p99"},    {"95.0%  ", "p95"},
    {"90.0%  ", "p90"}, {"75.0%  ", "p75"},   {"Median ", "median"}, {"25.0%  ", "p25"},
    {"10.0%  ", "p10"}, {" 5.0%  ", "p5"},    {" 1.0%  ", "p1"},     {" 0.1%  ", "p0_1"},
    {"Minimum", "min"}};

std::optional<double> NumberOf(const Json& of, const char* member) {
  return of.contains(member) ? std::optional(of.at(member).get<double>()) : std::nullopt;
}

std::string WithError(double value, std::optional<double> error) {
  return fmt::format("{:10.6f}{}\n", value, error ? fmt::format(" ± {:10.6f}", *error) : "");
}

// ln PPL of Q and base are means over the same tokens, so the error of their difference determines
// their covariance.
struct LogPerplexities {
  double q_error, base_error, ratio_error;
  double covariance() const {
    return (q_error * q_error + base_error * base_error - ratio_error * ratio_error) / 2;
  }
};

std::string PerplexityLines(const Json& text, const Json& exact) {
  const double q = text.at("perplexity"), ratio = text.at("ppl_ratio"), base = q / ratio;
  const auto q_error = NumberOf(text, "perplexity_error"),
             ratio_error = NumberOf(text, "ppl_ratio_error"),
             base_error = NumberOf(exact, "perplexity_error");
  std::optional<double> log_error, difference_error;
  std::string correlation;
  if (q_error && ratio_error && base_error) {
    const LogPerplexities logs = {*q_error / q, *base_error / base, *ratio_error / ratio};
    log_error = logs.ratio_error;
    difference_error = std::sqrt(std::max(
        0.0, *q_error * *q_error + *base_error * *base_error - 2 * q * base * logs.covariance()));
    if (const double product = logs.q_error * logs.base_error; product > 0)
      correlation = fmt::format("Cor(ln(PPL(Q)), ln(PPL(base))): {:6.2f}%\n",
                                100 * logs.covariance() / product);
  }
  return "====== Perplexity statistics ======\n"
         "Mean PPL(Q)                   : " +
         WithError(q, q_error) + "Mean PPL(base)                : " + WithError(base, base_error) +
         correlation + "Mean ln(PPL(Q)/PPL(base))     : " + WithError(std::log(ratio), log_error) +
         "Mean PPL(Q)/PPL(base)         : " + WithError(ratio, ratio_error) +
         "Mean PPL(Q)-PPL(base)         : " + WithError(q - base, difference_error);
}

std::string KlLines(const Json& kl) {
  std::string lines = "\n====== KL divergence statistics ======\nMean    KLD: " +
                      WithError(kl.at("mean"), NumberOf(kl, "error"));
  for (const QuantileLine& line : kKlLines)
    if (const auto value = NumberOf(kl, line.member))
      lines += fmt::format("{} KLD: {:10.6f}\n", line.label, *value);
  return lines;
}

std::string ProbabilityLines(const Json& text) {
  std::string lines = "\n====== Token probability statistics ======\n";
  if (text.contains("token_probability")) {
    const Json& change = text.at("token_probability");
    const auto percent = [&](const char* member) { return 100 * change.value(member, 0.0); };
    lines += fmt::format("Mean    Δp: {:6.3f} ± {:5.3f} %\n", percent("mean"), percent("error"));
    for (const QuantileLine& line : kProbabilityLines)
      lines += fmt::format("{} Δp: {:6.3f}%\n", line.label, percent(line.member));
    lines += fmt::format("RMS Δp    : {:6.3f} ± {:5.3f} %\n", percent("rms"), percent("rms_error"));
  }
  return lines + fmt::format("Same top p: {:6.3f} ± {:5.3f} %\n",
                             100 * text.at("top1_agreement").get<double>(),
                             100 * SameTopError(text).value_or(0));
}

// Reduces any names to one line.
std::string Heading(const Json& report, const Json& arm, const std::string& member) {
  const Json& validation = report.at("validation");
  const std::string text = member == "own_words"
                               ? "text drawn by the model"
                               : validation.at("data").at("name").get<std::string>();
  std::string heading = fmt::format("{}: {}, {} tokens scored", ModelWithCache(report, arm), text,
                                    arm.at(member).at("scored_tokens").get<int64_t>());
  for (char& c : heading)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return heading + "\n\n";
}

}  // namespace

std::string LlamaPerplexityText(const Json& report, const Json& arm, const std::string& member) {
  const Json& text = arm.at(member);
  const Json& exact = report.at("validation").at("arms").front();
  return Heading(report, arm, member) + PerplexityLines(text, exact.value(member, Json::object())) +
         KlLines(text.at("token_kl")) + ProbabilityLines(text);
}

}  // namespace oscar
