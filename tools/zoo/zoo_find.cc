// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo search and for: find versions by their content, and versions that fit a checkpoint.
#include <fmt/format.h>

#include "calib/consumers.h"
#include "capture/checkpoint/model_location.h"
#include "export/report/of_record.h"  // OwnArms
#include "linalg/base/error.h"
#include "tools/cli/text_table.h"
#include "tools/zoo/zoo_verbs.h"
#include "zoo/show/fitting.h"

namespace oscar {
namespace {

constexpr auto kFindScope = OptionScope::kRun;

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TextTable FoundTable() {
  return TextTable({"name", "version", "model", "method", ">bits", ">attention-KL", ">ppl ratio",
                    "gate", "runtimes", "identity"});
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

// Returns the --to target of oscar-export for the runtime whose choice was validated (OwnArms). For
// OSCAR's own rotations it is upstream's server.
std::string JudgedTarget(const IndexRow& row) {
  for (const ConsumerRules& rules : AllConsumers()) {
    const Json report = {{"serving", {{"auto", {{"for", rules.name}}}}}};
    if (rules.consumer != Consumer::kAny && OwnArms(report).front() == row.method)
      return std::string(rules.export_target);
  }
  return row.method.starts_with("oscar_") ? "sglang"
                                          : std::string(RulesOf(Consumer::kAny).export_target);
}

}  // namespace

OptionTable SearchTable(ZooOptions* options) {
  OptionTable table("oscar-zoo search",
                    "Finds versions in a zoo and lists them by ascending attention-KL.");
  SearchQuery& query = options->query;
  table.Add(&query.text, {.name = "text",
                          .help = "part of the version's name or of the base model's id",
                          .scope = kFindScope,
                          .positional = true});
  table.Add(&query.base, {.name = "base",
                          .help = "SHA-256 of the base model's config.json, or its first digits",
                          .unit = "digest",
                          .scope = kFindScope});
  table.Add(&query.method, {.name = "method",
                            .help = "part of the name of the headline configuration",
                            .scope = kFindScope});
  table.Add(&query.runtime, {.name = "runtime",
                             .help = "only versions that have a choice for this runtime",
                             .scope = kFindScope});
  table.Add(&query.max_bits, {.name = "max_bits",
                              .help = "largest number of bits per cached element",
                              .unit = "bits",
                              .scope = kFindScope});
  table.Add(&query.max_kl, {.name = "max_kl",
                            .help = "largest attention-KL, in nats",
                            .unit = "nats",
                            .scope = kFindScope});
  table.Add(&query.yanked,
            {.name = "yanked", .help = "also show versions that were yanked", .scope = kFindScope});
  AddSource(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo search qwen3 --runtime vllm --max-kl 0.02 --zoo https://zoo.example.org",
                "searches a zoo on a static server");
  return table;
}

OptionTable ForTable(ZooOptions* options) {
  OptionTable table("oscar-zoo for",
                    "Lists the versions that were made from a checkpoint, best first, and the "
                    "command that uses one; exit code 1 if there are none.");
  table.Add(&options->model, {.name = "model",
                              .help = "the model; it is recognized by the digests of its "
                                      "config.json and of a sample of its weights, not by its name",
                              .unit = "dir or id",
                              .scope = kFindScope,
                              .positional = true,
                              .required = true});
  AddSource(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo for Qwen/Qwen3-8B --zoo https://zoo.example.org",
                "finds an existing calibration, if there is one");
  return table;
}

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
        "no version in {} was made from this checkpoint (config.json {}); run oscar-calibrate {} "
        "to make one\n",
        source.address, digests.config_sha256.substr(0, 12), options.model);
    return {exit_code, ""};
  }
  TextTable table = FoundTable();
  for (const Fitting& fit : found) AddFound(*fit.row, &table);
  context.out << table.ToString();
  if (!found[0].weights_known) {
    context.out
        << "its config.json equals this model's; the weights were not compared, because the "
        << (digests.weights_sha256.empty() ? "model's weights are not here"
                                           : "entry has no sample of its weights")
        << "\n";
  }
  const std::string output = found[0].row->name.model + "-oscar";
  const std::string target = JudgedTarget(*found[0].row);
  context.out << fmt::format("use it: {} -o {}\n", pull, output);
  context.out << fmt::format("   then: oscar-export {} --to {} -o {}-{}\n", output, target, output,
                             target);
  return {};
}

}  // namespace oscar
