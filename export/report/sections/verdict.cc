// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the top of the page: whether the artifact is safe to use, and four numbers that show it, in
// plain words. Without a validation, it says that there is none.
#include "export/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "export/report/arm_look.h"
#include "export/report/capacity.h"
#include "export/report/html.h"
#include "export/report/sections.h"
#include "export/report/verdict_text.h"

namespace oscar {
namespace {

std::string Badge(std::string_view css, std::string_view sign, std::string_view html) {
  return fmt::format("<p class=\"verdict {}\"><span aria-hidden=\"true\">{}</span>{}</p>\n", css,
                     sign, html);
}

// Makes a tile, which says "not measured" if `big` is empty.
std::string Tile(std::string_view name, const std::string& big, const std::string& small_html) {
  return fmt::format(
      "<div class=\"tile\"><h3>{}</h3><div class=\"big{}\">{}</div><p>{}</p></div>\n", name,
      big.empty() ? " none" : "", big.empty() ? "not measured" : big, small_html);
}

std::string Tiles(const std::string& tiles) {
  return "<div class=\"tiles\">\n" + tiles + "</div>\n";
}

std::string GateTable(const Record& gate) {
  std::vector<TableRow> rows;
  for (const Record& check : gate["checks"].Items()) {
    const bool passed = check["passed"].True();
    rows.push_back(
        {{fmt::format("<code>{}</code>", Html(check["metric"].Text())),
          check.Has("value") ? Value(check["value"], Format::kError) : "not measured",
          Html(check["op"].Text()) + " " + Value(check["limit"], Format::kError),
          passed ? "<span class=\"pass\">✓ passes</span>" : "<span class=\"fail\">✗ fails</span>"},
         ""});
  }
  return Table("Checks of the gate", {"check", "measured", "demanded", ""}, rows);
}

std::string GateBadge(const Record& validation) {
  if (!validation.Has("gate")) return Badge("", "–", "Measured; no gate was given");
  return validation["gate"]["passed"].True() ? Badge("pass", "✓", "Gate passed")
                                             : Badge("fail", "✗", "Gate failed");
}

// Returns a badge only for a failure. The section on kernels has all other results.
std::string KernelBadge(const Record& validation) {
  if (!validation.Has("kernels") || validation["kernels"]["passed"].True()) return {};
  return Badge("fail", "✗", "CUDA kernels failed on this model");
}

std::string GateDetails(const Record& validation, const std::vector<ArmLook>& arms) {
  if (!validation.Has("gate")) {
    return Note(
        "The numbers are only a measurement. Use <code>--gate</code> to check whether they are "
        "good enough.");
  }
  const Record gate = validation["gate"];
  const std::string remedy = WhatWouldPass(validation);
  const auto arm = std::find_if(arms.begin(), arms.end(), [&](const ArmLook& look) {
    return look.arm["name"].Text() == gate["arm"].Text();
  });
  return fmt::format("<p class=\"demand\">Required of {}: <code>{}</code></p>\n", Html(arm->label),
                     Html(gate["text"].Text())) +
         GateTable(gate) + (remedy.empty() ? "" : "<p>" + Html(remedy) + "</p>\n");
}

std::string IntervalText(const Record& holder, std::string_view key, Format format) {
  return holder.Has(key) ? "95 % interval " + Interval(holder[key], format) : "";
}

std::string Sentences(const Record& validation, const ArmLook& headline) {
  const Verdict verdict = VerdictOf(validation);
  std::string caution;
  if (!verdict.caution.empty()) caution = Note("<b>" + Html(verdict.caution) + "</b>");
  if (!verdict.left_out.empty()) caution += Note(Html(verdict.left_out));
  const Record& arm = headline.arm;
  std::string html = fmt::format(
      "<p class=\"lead\">{}</p>\n<p class=\"lead\">The cache takes {} bits per element instead of "
      "16 (every stored byte counted), and attention moves by {} nats on average",
      Html(verdict.fit), Value(arm["bits_per_element"]["actual"], Format::kBits),
      Value(arm["local"]["kl"]["mean"], Format::kError));
  if (arm.Has("end_to_end")) {
    html += fmt::format(" per layer, {} once the errors of earlier layers have added up",
                        Value(arm["end_to_end"]["kl"]["mean"], Format::kError));
  }
  html += fmt::format(". {}</p>\n", Html(verdict.notice));
  if (!verdict.domains.empty())
    html += fmt::format("<p class=\"lead\">{}</p>\n", Html(verdict.domains));
  return html + caution;
}

std::string Validated(const Record& validation) {
  const std::vector<ArmLook> arms = LookOfArms(validation);
  const ArmLook& headline = HeadlineOf(arms);
  const Record& arm = headline.arm;
  const Record kl = arm["local"]["kl"], bits = arm["bits_per_element"];
  std::string tiles = Tile("Attention-KL, nats", Value(kl["mean"], Format::kError),
                           fmt::format("{} query rows see a quantized key<br>{}",
                                       Value(arm["local"]["rows"], Format::kCount),
                                       IntervalText(kl, "interval", Format::kError)));
  const std::string on = VerdictMember(validation);
  if (arm.Has(on)) {
    const Record text = arm[on];
    std::string small = IntervalText(text, "ppl_ratio_interval", Format::kPerplexity);
    small += fmt::format("{}perplexity {}", small.empty() ? "" : "<br>",
                         Value(text["perplexity"], Format::kPerplexity));
    for (const ArmLook& look : arms) {
      if (look.arm["method"].Text() != "bf16" || !look.arm.Has(on)) continue;
      small += " against " + Value(look.arm[on]["perplexity"], Format::kPerplexity);
      break;
    }
    if (validation.Has("verdict_text") && on != "text")
      small += "<br>on the model’s own words: " + Html(validation["verdict_text"]["reason"].Text());
    tiles += Tile("Perplexity ratio", Value(text["ppl_ratio"], Format::kPerplexity), small);
  } else {
    tiles += Tile("Perplexity ratio", "",
                  validation["source"].Text() == "dump" ? "a dump holds no model" : "");
  }
  tiles += arm.Has("needle")
               ? Tile("Needle accuracy", Value(arm["needle"]["accuracy"], Format::kPercent),
                      "negative log-likelihood of the answers " +
                          Value(arm["needle"]["answer_nll"], Format::kError))
               : Tile("Needle accuracy", "", "");
  tiles +=
      Tile("Stored bits per element", Value(bits["actual"], Format::kBits),
           fmt::format("at {} tokens; {} by the paper’s formula",
                       Value(bits["tokens"], Format::kCount), Value(bits["paper"], Format::kBits)));
  return GateBadge(validation) + KernelBadge(validation) + Sentences(validation, headline) +
         Tiles(tiles) + GateDetails(validation, arms);
}

std::string CalibratedOnly(const Record& report) {
  const Record summary = report["summary"], serving = report["serving"];
  std::string html = Badge("", "–", "Calibrated; not yet validated");
  const std::string name = CalibrationHeadline(summary);
  std::string tiles;
  if (name.empty() || summary["arms"][name]["rows_beyond"].Number() == 0) {
    const char* why =
        name.empty() ? "No tokens were held out" : "No held-out row sees a quantized key";
    html += fmt::format(
        "<p class=\"lead\">The rotations are orthogonal to the precision given below. {}, so their "
        "effect on attention was not measured.</p>\n",
        why);
    tiles += Tile("Attention-KL, nats", "", why);
  } else {
    const Record arm = summary["arms"][name];
    html += fmt::format(
        "<p class=\"lead\">On rows of the calibration text that were held out of the fit and see "
        "a quantized key, attention with {} moves by {} nats, averaged over {} layers.</p>\n",
        Html(MethodLabel(name)), Value(arm["kl_mean_beyond"], Format::kError),
        Value(summary["layers"], Format::kCount));
    tiles += Tile("Attention-KL, nats", Value(arm["kl_mean_beyond"], Format::kError),
                  "without windows " + Value(arm["kl_mean_no_windows"], Format::kError));
    tiles += Tile(
        "Output error", Value(arm["output_rel_error_beyond"], Format::kError),
        "relative; without windows " + Value(arm["output_rel_error_no_windows"], Format::kError));
  }
  tiles += Tile("Clip ratio, keys / values", ExportedClip(serving), "as exported for serving");
  tiles += Tile("Orthogonality", Value(summary["orthogonality"], Format::kInvariant),
                "worst max|RᵀR − I|; as float32 " +
                    Value(summary["float32_orthogonality"], Format::kInvariant));
  return html + Tiles(tiles) +
         Note(
             "Perplexity, needle recall and errors that add up from layer to layer need the model: "
             "<code>oscar-validate ARTIFACT --model MODEL</code>.");
}

}  // namespace

std::string VerdictSection(const Record& report) {
  std::string html = "<p class=\"over\">INT2 KV cache · attention report</p>\n";
  html += fmt::format("<h1>{}</h1>\n", Html(report["model"].TextOr("id", "unknown model")));
  return html +
         (report.Has("validation") ? Validated(report["validation"]) : CalibratedOnly(report));
}

}  // namespace oscar
