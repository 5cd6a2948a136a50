// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo search and for: what is in a zoo, and what of it fits a checkpoint.
#include <fmt/format.h>

#include "capture/checkpoint/model_location.h"
#include "linalg/error.h"
#include "tools/cli/text_table.h"
#include "tools/zoo_verbs.h"
#include "zoo/fitting.h"

namespace oscar {
namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TextTable FoundTable() {
  return TextTable({"name", "version", "model", "method", ">bits", ">kl", ">ppl ratio", "gate",
                    "runtimes", "identity"});
}

void AddFound(const IndexRow& row, TextTable* table) {
  table->AddRow({row.name.text(), row.version.text() + (row.yanked.empty() ? "" : " (yanked)"),
                 row.model, row.method, NumberText(row.bits), NumberText(row.kl),
                 NumberText(row.ppl_ratio), row.gate.empty() ? "ungated" : "passed",
                 Joined(row.runtimes), row.identity.substr(0, 12)});
}

std::string PullOf(const std::string& source, const IndexRow& row) {
  return fmt::format("oscar-zoo pull {}/{}@sha256:{}", source, row.name.text(), row.identity);
}

}  // namespace

CommandResult SearchVerb(const ZooOptions& options, CommandContext& context) {
  const ZooSource source = OpenSource(ZooAddressOf(options), TransferOf(options, context));
  const ZooIndex index = source.index();
  SearchQuery query = options.query;
  if (query.base.starts_with("sha256:")) query.base.erase(0, 7);
  const std::vector<const IndexRow*> found = Search(index, query);
  TextTable table = FoundTable();
  Json entries = Json::array();
  for (const IndexRow* row : found) {
    if (options.json) {
      const IndexRow* latest = FindRow(index, {row->name});
      entries.push_back(RowJson(*row, latest == row));
    } else {
      AddFound(*row, &table);
    }
  }
  if (options.json) {
    PrintJson(context, "search", {{"zoo", source.address}, {"entries", entries}});
    return {};
  }
  if (!found.empty()) context.out << table.ToString();
  context.out << fmt::format("{} of {} versions\n", found.size(), index.rows.size());
  return {};
}

CommandResult ForVerb(const ZooOptions& options, CommandContext& context) {
  const ZooSource source = OpenSource(ZooAddressOf(options), TransferOf(options, context));
  const ModelLocation model = ResolveModel(options.model, ProcessEnvironment(), false);
  const ModelDigests digests = DigestsOfModel(model.directory);
  const ZooIndex index = source.index();
  const std::vector<Fitting> found = FindFitting(index, digests);
  const ExitCode exit_code = found.empty() ? ExitCode::kGateFailed : ExitCode::kDone;
  const std::string pull = found.empty() ? "" : PullOf(source.address, *found[0].row);
  if (options.json) {
    Json entries = Json::array();
    for (const Fitting& fit : found) {
      entries.push_back(RowJson(*fit.row, FindRow(index, {fit.row->name}) == fit.row));
      entries.back()["weights_known"] = fit.weights_known;
    }
    PrintJson(context, "for",
              {{"zoo", source.address},
               {"model", model.id},
               {"config_sha256", digests.config_sha256},
               {"weights_sha256", digests.weights_sha256},
               {"entries", entries},
               {"pull", found.empty() ? Json(nullptr) : Json(pull)}});
    return {exit_code, ""};
  }
  if (found.empty()) {
    context.out << fmt::format(
        "nothing in {} was made from this checkpoint (config.json {}); "
        "oscar-calibrate {} makes it\n",
        source.address, digests.config_sha256.substr(0, 12), options.model);
    return {exit_code, ""};
  }
  TextTable table = FoundTable();
  for (const Fitting& fit : found) AddFound(*fit.row, &table);
  context.out << table.ToString();
  if (!found[0].weights_known) {
    context.out << "its config.json is this model's; the weights were not compared, for the "
                << (digests.weights_sha256.empty() ? "model's are not here"
                                                   : "entry has no sample of them")
                << "\n";
  }
  const std::string output = found[0].row->name.model + "-oscar";
  context.out << fmt::format("use it: {} -o {}\n   then: oscar-export {} --to {} -o DIRECTORY\n",
                             pull, output, output, "sglang");
  return {};
}

}  // namespace oscar
