// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the model, the text and the program: the few lines needed to compare two reports. The
// complete record is at the end of the page (settings.cc).
#include <fmt/format.h>

#include "export/report/html.h"
#include "export/report/sections.h"

namespace oscar {
namespace {

class List {
 public:
  void Add(std::string_view name, const std::string& html) {
    if (!html.empty()) items_ += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, html);
  }
  std::string Html() const { return "<dl>\n" + items_ + "</dl>\n"; }

 private:
  std::string items_;
};

std::string Code(const std::string& text) {
  return text.empty() ? "" : fmt::format("<code>{}</code>", Html(text));
}

std::string Model(const Record& model) {
  std::string html = Html(model.TextOr("id", "unknown"));
  if (model.IsText("revision")) html += " at " + Code(model["revision"].Text());
  if (model.IsText("model_type")) html += ", " + Html(model["model_type"].Text());
  if (model.IsNumber("num_layers"))
    html += fmt::format(", {} layers", Value(model["num_layers"], Format::kCount));
  if (model.IsText("stored_dtype")) html += ", stored as " + Html(model["stored_dtype"].Text());
  return html;
}

std::string CalibrationText(const Record& data) {
  std::string html = Html(data.TextOr("name", "unknown"));
  if (data.Has("tokens") && data["tokens"].IsNumber("used"))
    html += fmt::format(", {} tokens", Value(data["tokens"]["used"], Format::kCount));
  return html;
}

std::string HeldOut(const Record& calibration) {
  if (!calibration.Has("held_out")) return {};
  const Record held_out = calibration["held_out"];
  if (!held_out.IsNumber("tokens")) return {};
  std::string html = Value(held_out["tokens"], Format::kCount) + " tokens";
  if (held_out.IsText("kind")) html += ", " + Html(held_out["kind"].Text());
  return html;
}

std::string ValidationText(const Record& data) {
  std::string html = fmt::format("{}, {} tokens", Html(data["name"].Text()),
                                 Value(data["tokens"], Format::kCount));
  std::string texts;
  for (const Record& text : data["texts"].Items()) {
    texts += fmt::format("{}{} × {}", texts.empty() ? ": " : ", ",
                         Value(text["sequences"], Format::kCount),
                         Value(text["length"], Format::kCount));
  }
  html += texts;
  if (data.Has("overlap")) {
    html += fmt::format("; overlap with the calibration text {}",
                        Value(data["overlap"]["fraction"], Format::kPercent));
  }
  return html;
}

std::string Joined(const Record& object, const char* between,
                   std::initializer_list<const char*> keys) {
  std::string html;
  for (const char* key : keys) {
    if (object.IsText(key)) html += (html.empty() ? "" : between) + Html(object[key].Text());
  }
  return html;
}

}  // namespace

std::string ExportedClip(const Record& serving) {
  const bool chosen = serving.Has("auto");
  const auto has = [&](const char* ratio) { return serving["auto"].Has(ratio); };
  if (chosen && !(has("k_clip_ratio") && has("v_clip_ratio"))) return "by layer";
  const Record of = chosen ? serving["auto"] : serving;
  return Value(of["k_clip_ratio"], Format::kBits) + " / " +
         Value(of["v_clip_ratio"], Format::kBits);
}

std::string ProvenanceSection(const Record& report) {
  List list;
  const Record calibration = report["calibration"], serving = report["serving"];
  list.Add("Model", Model(report["model"]));
  list.Add("Fitted on", CalibrationText(report["data"]));
  list.Add("Held out of the fit", HeldOut(calibration));
  if (calibration.IsText("composition"))
    list.Add("Rotation", "composition " + Code(calibration["composition"].Text()) +
                             (calibration.IsText("value_target")
                                  ? ", value target " + Code(calibration["value_target"].Text())
                                  : ""));
  std::string serve = fmt::format("clip ratio of keys / values {}", ExportedClip(serving));
  if (serving.Has("sink_tokens") && serving.Has("recent_tokens")) {
    serve += fmt::format("; first {} and last {} tokens in 16 bits",
                         Value(serving["sink_tokens"], Format::kCount),
                         Value(serving["recent_tokens"], Format::kCount));
  }
  list.Add("Recommended", serve);
  if (report.Has("validation")) {
    const Record validation = report["validation"];
    list.Add("Validated on", ValidationText(validation["data"]));
    list.Add("Measured from",
             validation["source"].Text() == "dump"
                 ? "a dump, without the model: errors at the model's own inputs only"
                 : "the model");
    if (validation.Has("model") &&
        validation["model"].TextOr("id", "") != report["model"].TextOr("id", ""))
      list.Add("Validated model", Model(validation["model"]));
    if (validation["rotations"].IsText("sha256"))
      list.Add("Rotations", "SHA-256 " + Code(validation["rotations"]["sha256"].Text()));
    list.Add("Program", Joined(validation["program"], " ", {"name", "version", "git_commit"}));
    list.Add("Machine", Joined(validation["machine"], ", ", {"device", "compute_dtype"}));
  }
  return list.Html();
}

}  // namespace oscar
