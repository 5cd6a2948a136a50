// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo site: a zoo as pages.
#include <fmt/format.h>

#include <map>

#include "linalg/error.h"
#include "tools/cli/build_info.h"
#include "tools/zoo_sign.h"
#include "tools/zoo_verbs.h"
#include "zoo/show/site.h"

namespace oscar {

constexpr auto kShowScope = OptionScope::kRun;

OptionTable SiteTable(ZooOptions* options) {
  OptionTable table("oscar-zoo site",
                    "Writes a zoo as pages: an index, a page per model with its report, badges, a "
                    "feed; opens from the disk.");
  table.Add(&options->output, {.name = "dir",
                               .help = "directory to write: a new one, or an earlier site, which "
                                       "is replaced",
                               .scope = kShowScope,
                               .positional = true,
                               .required = true});
  AddZoo(options, &table);
  table.Add(&options->url, {.name = "url",
                            .help = "where the zoo will be, for the commands that the pages show",
                            .unit = "https://...",
                            .scope = kShowScope});
  table.Add(&options->title,
            {.name = "title", .help = "heading of the pages", .unit = "text", .scope = kShowScope});
  AddTrust(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo site /srv/www --zoo /srv/zoo --url https://zoo.example.org",
                "no page asks for anything besides itself");
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
  if (const auto trust = TrustOf(options)) {
    for (const VersionVerdict& one : JudgeVersions(*trust, zoo, std::nullopt)) {
      std::string& text = judged[one.name.text() + "@" + one.version.text()];
      for (const std::string& signer : one.verdict.signers)
        text += (text.empty() ? "" : ", ") + signer;
      text = one.verdict.word() + (text.empty() ? "" : ": ") + text;
    }
    pages.signed_by = [&judged](const IndexRow& row) {
      const auto found = judged.find(row.text());  // none: published meanwhile
      return found == judged.end() ? "" : found->second;
    };
  }
  const Site site = WriteSite(zoo, options.output, pages);
  const ExitCode exit_code = site.problems.empty() ? ExitCode::kDone : ExitCode::kInput;
  if (options.json) {
    PrintJson(context, "site",
              {{"zoo", zoo.path().string()},
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
