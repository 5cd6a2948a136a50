// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo diff and site: compare two versions, and render a zoo as web pages.
#include <fmt/format.h>

#include <map>

#include "capture/files/atomic_file.h"
#include "capture/files/temporary_directory.h"
#include "export/artifact/artifact_reader.h"
#include "linalg/base/error.h"
#include "tools/cli/build_info.h"
#include "tools/cli/text_table.h"
#include "tools/zoo/zoo_sign.h"
#include "tools/zoo/zoo_verbs.h"
#include "zoo/show/entry_diff.h"
#include "zoo/show/site.h"
#include "zoo/signing/trust_error.h"
#include "zoo/source/pull.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr auto kShowScope = OptionScope::kRun;

// Returns the directory of a local artifact, or pulls a version from a zoo into `scratch`.
fs::path ArtifactAt(const std::string& text, const ZooOptions& options, CommandContext& context,
                    const fs::path& scratch) {
  if (Artifact::LooksLikeOne(text)) return text;
  FetchOptions fetch{.transfer = TransferOf(options, context)};
  ZooOptions beside = options;  // text that names a zoo needs no --zoo
  if (!ParseZooAddress(text).source.empty()) beside.zoo.clear();
  const auto [source, reference] = Ask(text, beside, fetch.transfer);
  Pull(source, reference, scratch, fetch);
  return scratch;
}

}  // namespace

OptionTable DiffTable(ZooOptions* options) {
  OptionTable table("oscar-zoo diff",
                    "Compares two artifacts with the same geometry: rotations, spectra, clip "
                    "ratios and reports.");
  for (const auto& [field, name] :
       {std::pair(&options->reference, "a"), std::pair(&options->other, "b")}) {
    table.Add(field, {.name = name,
                      .help = "an artifact, or [ZOO/]ORG/MODEL[@X.Y.Z]",
                      .scope = kShowScope,
                      .positional = true,
                      .required = true});
  }
  table.Add(
      &options->output,
      {.name = "html", .help = "also write an HTML page", .unit = "file", .scope = kShowScope});
  AddSource(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo diff Qwen/Qwen3-8B@0.1.0 Qwen/Qwen3-8B@0.2.0 --html diff.html",
                "shows what a new calibration changed");
  return table;
}

CommandResult DiffVerb(const ZooOptions& options, CommandContext& context) {
  const TemporaryDirectory scratch("diff");
  const ArtifactDiff diff = DiffArtifacts(
      ArtifactAt(options.reference, options, context, scratch.path() / "a"), options.reference,
      ArtifactAt(options.other, options, context, scratch.path() / "b"), options.other);
  if (!options.output.empty() && !context.dry_run)
    WriteFileAtomically(options.output, DiffPage(diff));
  if (options.json) {
    PrintJson(context, "diff", DiffToJson(diff));
    return {};
  }
  TextTable metrics({"metric", ">a", ">b"});
  for (const auto& [name, a, b] : diff.metrics)
    metrics.AddRow({name, NumberText(a), NumberText(b)});
  TextTable sides(
      {">layer", "side", ">largest angle", ">mean", ">of", ">spectra", ">clip a", ">clip b"});
  for (const SideDiff& side : diff.sides) {
    sides.AddRow({fmt::format("{}", side.layer_id), std::string(1, side.side),
                  fmt::format("{:.2f}°", side.max_angle), fmt::format("{:.2f}°", side.mean_angle),
                  fmt::format("{}", side.leading), fmt::format("{:.4f}", side.spectrum),
                  fmt::format("{:.3f}", side.clip_a), fmt::format("{:.3f}", side.clip_b)});
  }
  context.out << fmt::format("a: {} {}\nb: {} {}\n\n", diff.name_a, diff.identity_a, diff.name_b,
                             diff.identity_b)
              << metrics.ToString() << "\n"
              << sides.ToString();
  return {ExitCode::kDone, options.output};
}

OptionTable SiteTable(ZooOptions* options) {
  OptionTable table("oscar-zoo site",
                    "Writes a zoo as HTML pages: an index, a page per model with its report, "
                    "badges and a feed; the pages open directly from the disk.");
  table.Add(&options->output, {.name = "dir",
                               .help = "directory to write: a new one, or an earlier site, which "
                                       "is replaced",
                               .scope = kShowScope,
                               .positional = true,
                               .required = true});
  AddZoo(options, &table);
  table.Add(&options->url,
            {.name = "url",
             .help = "address of the published zoo, for the commands that the pages show",
             .unit = "https://...",
             .scope = kShowScope});
  table.Add(&options->title,
            {.name = "title", .help = "heading of the pages", .unit = "text", .scope = kShowScope});
  AddTrust(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo site /srv/www --zoo /srv/zoo --url https://zoo.example.org",
                "writes pages that load nothing from other sites");
  return table;
}

CommandResult SiteVerb(const ZooOptions& options, CommandContext& context) {
  const Zoo zoo = Zoo::Open(ZooPath(options));
  if (context.dry_run) throw UsageError("site has no --dry-run");
  const BuildInfo build = ThisBuild();
  SiteOptions pages{.url = options.url,
                    .title = options.title,
                    .made_by = build.version + " " + build.git_commit};
  std::map<std::string, std::string> judged;
  std::vector<VersionVerdict> verdicts;
  const auto trust = TrustOf(options);
  if (trust) {
    verdicts = JudgeVersions(*trust, zoo, std::nullopt);
    for (const auto& [name, version, verdict] : verdicts) {
      const std::string why = verdict.Reason(trust->policy), by = verdict.trusted() ? " " : ": ",
                        text = verdict.word() + (why.empty() ? "" : by + why),
                        which = name.text() + "@" + version.text();
      judged[which] = text;
      if (verdict.refused()) context.log.Error("not_trusted", which + ": " + text);
    }
    pages.signed_by = [&judged](const IndexRow& row) {
      const auto found = judged.find(row.text());  // absent if it was published meanwhile
      return found == judged.end() ? "" : found->second;
    };
  }
  const Site site = WriteSite(zoo, options.output, pages);
  const ExitCode exit_code = site.problems.empty() ? CodeOf(verdicts)
                             : trust               ? TrustExit::kAltered
                                                   : ExitCode::kInput;
  if (options.json) {
    PrintJson(context, "site",
              {{"zoo", zoo.path().string()},
               {"trust", VerdictsToJson(verdicts)},
               {"output", options.output},
               {"models", site.models},
               {"versions", site.versions},
               {"kept", site.kept},
               {"problems", site.problems}});
    return {exit_code, ""};
  }
  for (const std::string& problem : site.problems) context.log.Error("damaged", problem);
  context.out << fmt::format("{} models, {} versions{}\n", site.models, site.versions,
                             site.kept == 0 ? "" : fmt::format(", {} pages as before", site.kept));
  return {exit_code, options.output + "/index.html"};
}

}  // namespace oscar
