// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/export/artifact_text.h"

#include <fmt/format.h>

#include <map>

#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/report.h"
#include "export/evaluate/bits_per_element.h"
#include "export/report/of_record.h"
#include "export/report/sensitive_sides.h"
#include "tools/cli/text_table.h"

namespace oscar {
namespace {

// Converts a member of any type to text; returns `none` if it is absent.
std::string Text(const Json& json, const char* pointer, const char* none = "unknown") {
  const Json value = json.value(Json::json_pointer(pointer), Json());
  if (value.is_null()) return none;
  return value.is_string() ? Escaped(value.get<std::string>()) : value.dump();
}

std::string Number(const Json& json, const char* pointer, const char* format) {
  const Json value = json.value(Json::json_pointer(pointer), Json());
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

// Returns "28 layers: 8 KV heads of 128" and, if layers differ, the number of each kind.
std::string GeometryText(const Json& geometry) {
  std::map<std::string, int> kinds;
  for (const Json& layer : geometry) {
    const std::string k = Text(layer, "/head_dim"), v = Text(layer, "/v_head_dim");
    ++kinds[fmt::format("{} query and {} KV heads of {}", Text(layer, "/num_q_heads"),
                        Text(layer, "/num_kv_heads"), k == v ? k : k + " and " + v)];
  }
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += fmt::format("{}{} with {}", text.empty() ? "" : ", ", count, kind);
  return text;
}

std::string ValidationText(const Json& report) {
  if (!report.contains("validation")) return "not yet; run oscar-validate";
  const Json& validation = report.at("validation");
  const std::string headline = Text(validation, "/headline_arm");
  for (const Json& arm : validation.at("arms")) {
    if (arm.at("name") != validation.at("headline_arm")) continue;
    return fmt::format(
        "{}: attention-KL {}, perplexity ratio {}; gate: {}", headline,
        Number(arm, "/local/kl/mean", "{:.4g}"), Number(arm, "/text/ppl_ratio", "{:.4g}"),
        validation.contains("gate")
            ? Text(validation, "/gate/text") +
                  (validation.at("gate").at("passed") == true ? ", passed" : ", failed")
            : "none");
  }
  return headline;
}

}  // namespace

std::string ImportedText(const Artifact& artifact) {
  const Json& manifest = artifact.manifest();
  std::string text = fmt::format("{}: imported from {} files, unverified\n",
                                 artifact.directory().string(), Text(manifest, "/imported/from"));
  for (const Json& file : manifest.at("data").at("files"))
    text += fmt::format("  {}  SHA-256 {}\n", Text(file, "/name"), Text(file, "/sha256"));
  return text + fmt::format("model {}, {} layers; --json lists the tensors\n",
                            Text(manifest, "/model/id"), artifact.layer_ids().size());
}

std::string ArtifactText(const Artifact& artifact) {
  const Json& manifest = artifact.manifest();
  const Json report = artifact.report();
  const ServingSettings serving = ServingOf(report, (artifact.directory() / kReportFile).string());
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  add("artifact", artifact.directory().string());
  add("identity", artifact.identity());
  add("model",
      Text(manifest, "/model/id") + (Text(manifest, "/model/revision", "").empty()
                                         ? ""
                                         : ", revision " + Text(manifest, "/model/revision")));
  add("layers",
      fmt::format("{}: {}", artifact.layer_ids().size(), GeometryText(manifest.at("geometry"))));
  add("fitted to", fmt::format("{}, {} tokens", Text(manifest, "/data/name"),
                               Text(manifest, "/geometry/0/tokens")));
  add("fit", fmt::format("{}, values by {}", Text(manifest, "/calibration/composition"),
                         Text(manifest, "/calibration/value_target")));
  add("serving", fmt::format("{} first and {} recent tokens exact, {}, {}", serving.sink_tokens,
                             serving.recent_tokens,
                             serving.quant_group_size == 0
                                 ? "a scale per head"
                                 : fmt::format("groups of {} values", serving.quant_group_size),
                             ClipText(report.at("serving"))));
  if (const std::string bits = BitsText(report.at("serving")); !bits.empty()) add("bits", bits);
  const std::string sensitive = SensitiveSidesText(report.at("serving"));
  add("sensitive", sensitive.empty() ? "not measured; oscar-calibrate --effort thorough, or more "
                                       "--bits, measures which layers need more than 2 bits"
                                     : sensitive);
  add("validated", ValidationText(report));
  add("made by", fmt::format("{} {}", Text(manifest, "/program/name"),
                             Text(manifest, "/program/version", "")));
  std::string files = std::string(kManifestFile);
  for (const auto& [name, digest] : manifest.at("files").items()) files += ", " + Escaped(name);
  add("files", files + "; --json lists tensors and digests");
  const ReportTable runtimes = RuntimesTable(manifest.at("serving"), artifact.directory().string());
  if (runtimes.rows.empty()) return text;
  TextTable table(runtimes.header);
  for (const auto& row : runtimes.rows) table.AddRow(row);
  return text + "\n" + table.ToString();
}

}  // namespace oscar
