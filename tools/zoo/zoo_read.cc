// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo ls, info and pull: read a local or remote zoo.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/digest_json.h"
#include "capture/files/quote.h"
#include "export/evaluate/gate.h"
#include "linalg/base/error.h"
#include "tools/cli/text_table.h"
#include "tools/zoo/zoo_sign.h"
#include "tools/zoo/zoo_verbs.h"
#include "zoo/source/pull.h"
#include "zoo/trust/signature_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Formats a metric of the entry for people.
std::string Metric(const ZooEntry& entry, const char* name) {
  const Json metrics = entry.validation.value("metrics", Json::object());
  const bool there = metrics.is_object() && metrics.contains(name) && metrics.at(name).is_number();
  return there ? NumberText(metrics.at(name).get<double>()) : "-";
}

std::string GateText(const ZooEntry& entry) {
  if (!entry.validation.contains("gate")) return "ungated";
  return "passed: " + TextMember(entry.validation.value("gate", Json()), "text");
}

// Describes an entry for people: its name, its model, its results, its publisher and its files.
std::string InfoText(const FetchedEntry& fetched, bool latest, const Json& versions) {
  const ZooEntry& entry = fetched.entry;
  std::string facts;
  const auto add = [&](std::string_view name, const std::string& value) {
    facts += fmt::format("{:<16} {}\n", name, value);
  };
  std::string all;
  for (const Json& version : versions)
    all += (all.empty() ? "" : ", ") + version.get<std::string>();
  add("name", fmt::format("{}@{}{}", entry.name.text(), entry.version.text(),
                          latest ? ", the latest" : ""));
  if (!fetched.yanked.empty()) add("yanked", Escaped(fetched.yanked));
  add("versions", all);
  add("identity", entry.identity);
  add("model", TextMember(entry.model, "id"));
  if (entry.model.contains("revision")) add("revision", TextMember(entry.model, "revision"));
  add("headline", TextMember(entry.validation, "headline_arm"));
  const Json metrics = entry.validation.value("metrics", Json::object());
  for (const Measure& metric : GateMetrics()) {
    const std::string name(metric.name);
    if (metrics.is_object() && metrics.contains(name))
      add(metric.name, fmt::format("{:<12} {}", Metric(entry, name.c_str()), metric.meaning));
  }
  add("gate", GateText(entry));
  add("published", fmt::format("by {} {}", TextMember(entry.publisher, "program"),
                               TextMember(entry.publisher, "version")));
  TextTable files({"file", ">bytes", "sha256"});
  for (const auto& [name, digest] : entry.files)
    files.AddRow({name, fmt::format("{}", digest.size), digest.sha256});
  return facts + "\n" + files.ToString();
}

SignatureTexts FetchSignatureTexts(const ZooSource& source, const FetchedEntry& fetched,
                                   const TransferOptions& transfer) {
  return {FetchSignatures(source, fetched.entry.name, fetched.entry.version, transfer),
          ReadSource(source, kSnapshotFile, kMaxSnapshotBytes, transfer), fetched.yanked};
}

// Returns the signers that a version's signatures claim, for users without a policy, and describes
// them in `text`. If they cannot be fetched, `text` says so, and the pull continues.
Json Claims(const ZooSource& source, const ZooEntry& entry, const TransferOptions& transfer,
            std::string* text) {
  try {
    const std::vector<std::string> signers =
        ClaimedSigners(FetchSignatures(source, entry.name, entry.version, transfer),
                       entry.name.text() + "@" + entry.version.text());
    std::string list;
    for (const std::string& signer : signers) list += (list.empty() ? "" : ", ") + Escaped(signer);
    *text = list.empty() ? "not signed"
                         : fmt::format(
                               "signed by {}, according to its unverified signatures; verify them "
                               "with --public-key FILE or --trust FILE",
                               list);
    return signers;
  } catch (const InputError& error) {
    *text = fmt::format("its signatures cannot be read: {}", error.what());
  } catch (const ResourceError& error) {
    *text = fmt::format("its signatures could not be fetched: {}", error.what());
  }
  return nullptr;
}

// Local zoos whose blobs need no download: OSCAR_ZOO, if it is a directory.
std::vector<fs::path> LocalZoos(const ZooOptions& options, const ZooSource& source) {
  const std::string zoo = FindZooAddress(options);
  if (zoo.empty() || zoo == source.address || IsRemoteAddress(zoo) || !Zoo::LooksLikeOne(zoo))
    return {};
  return {zoo};
}

}  // namespace

CommandResult LsVerb(const ZooOptions& options, CommandContext& context) {
  const ZooSource source = OpenSource(ZooAddressOf(options), TransferOf(options, context));
  const ZooIndex index = source.index();
  TextTable table(
      {"name", "version", "", ">bytes", ">attention-KL", ">ppl ratio", "gate", "identity"});
  Json entries = Json::array();
  for (size_t i = 0; i < index.rows.size(); ++i) {
    const IndexRow& row = index.rows[i];
    const auto stands_above = [&](const IndexRow& other) { return other.yanked.empty(); };
    auto end = index.rows.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto above = end;
    while (end != index.rows.end() && end->name == row.name) ++end;
    const bool latest = row.yanked.empty() && std::none_of(above, end, stands_above);
    if (options.json) {
      entries.push_back(RowJson(row, latest));
    } else {
      table.AddRow({row.name.text(), row.version.text(),
                    !row.yanked.empty() ? "yanked"
                    : latest            ? "latest"
                                        : "",
                    fmt::format("{}", row.bytes), NumberText(row.kl), NumberText(row.ppl_ratio),
                    row.gate.empty() ? "ungated" : "passed", row.identity.substr(0, 12)});
    }
  }
  const ExitCode exit_code = index.problems.empty() ? ExitCode::kDone : ExitCode::kInput;
  if (options.json) {
    PrintJson(context, "ls",
              {{"zoo", source.address}, {"entries", entries}, {"problems", index.problems}});
    return {exit_code, ""};
  }
  context.out << table.ToString();
  for (const std::string& problem : index.problems) context.log.Error("damaged", problem);
  return {exit_code, ""};
}

CommandResult InfoVerb(const ZooOptions& options, CommandContext& context) {
  const TransferOptions transfer = TransferOf(options, context);
  const auto [source, reference] = Ask(options.reference, options, transfer);
  const FetchedEntry fetched = FetchEntry(source, reference, transfer);
  const ZooEntry& entry = fetched.entry;
  const ZooIndex index = source.index();
  const IndexRow* latest = FindRow(index, {entry.name});
  Json json = {{"name", entry.name.text()},
               {"version", entry.version.text()},
               {"latest", latest != nullptr && latest->version == entry.version},
               {"identity", entry.identity},
               {"bytes", entry.bytes()},
               {"model", entry.model},
               {"validation", entry.validation},
               {"publisher", entry.publisher},
               {"zoo", source.address},
               {"versions", Json::array()},
               {"files", Json::object()}};
  if (!fetched.yanked.empty()) json["yanked"] = fetched.yanked;
  for (const IndexRow& row : index.rows)
    if (row.name == entry.name) json["versions"].push_back(row.version.text());
  for (const auto& [name, digest] : entry.files) json["files"][name] = DigestToJson(digest);
  if (options.json) {
    PrintJson(context, "info", std::move(json));
    return {};
  }
  context.out << InfoText(fetched, json.at("latest").get<bool>(), json.at("versions"));
  return {};
}

CommandResult PullVerb(const ZooOptions& options, CommandContext& context) {
  const ZooReference wanted = ParseZooAddress(options.reference).reference;
  const std::string output = options.output.empty() ? wanted.name.model + "-oscar" : options.output;
  FetchOptions fetch;
  fetch.transfer = TransferOf(
      options, context,
      "the files fetched so far are in " + output + ".partial; repeat the command to continue");
  const Asked asked = Ask(options.reference, options, fetch.transfer);
  const ZooSource& source = asked.source;
  const ZooReference& reference = asked.reference;
  fetch.zoos = LocalZoos(options, source);
  const auto trust = TrustOf(options);
  TrustVerdict verdict;
  if (trust) {
    const bool latest = !reference.version && !reference.identity;
    fetch.judge = [&, latest](const FetchedEntry& fetched) {
      verdict =
          DemandTrust(*trust, fetched.entry, FetchSignatureTexts(source, fetched, fetch.transfer),
                      latest, &context.log);
    };
  }
  Pulled pulled;
  if (context.dry_run) {
    FetchedEntry fetched = FetchEntry(source, reference, fetch.transfer);
    if (fetch.judge) fetch.judge(fetched);
    pulled = {std::move(fetched.entry), fetched.yanked, {}};
  } else {
    TransferLine line(context, "pulling " + reference.name.text());
    fetch.progress = [&](const std::string& file, uint64_t done, uint64_t total) {
      line.Show(file, done, total);
    };
    pulled = Pull(source, reference, output, fetch);
    line.Done(pulled.counts);
  }
  const ZooEntry& entry = pulled.entry;
  if (!pulled.yanked.empty()) {
    context.log.Info("yanked", fmt::format("{}@{} was yanked: {}", entry.name.text(),
                                           entry.version.text(), Escaped(pulled.yanked)));
  }
  for (const std::string& file : pulled.counts.refetched)
    context.log.Info("refetched", file + ": the local copy was damaged and was fetched again");
  std::string signers = trust ? verdict.word() + " " + verdict.Reason(trust->policy) : "";
  Json claims;
  if (verdict.level == TrustLevel::kOff) claims = Claims(source, entry, fetch.transfer, &signers);
  if (options.json) {
    const VersionVerdict judged{entry.name, entry.version, verdict};
    PrintJson(context, "pull",
              {{"zoo", source.address},
               {"claimed_signers", claims},
               {"trust", trust ? VerdictsToJson({&judged, 1})[0] : Json(nullptr)},
               {"name", entry.name.text()},
               {"version", entry.version.text()},
               {"identity", entry.identity},
               {"bytes", entry.bytes()},
               {"fetched_bytes", pulled.counts.bytes},
               {"resumed_bytes", pulled.counts.resumed},
               {"reused_bytes", pulled.counts.reused},
               {"refetched", pulled.counts.refetched},
               {"yanked", pulled.yanked.empty() ? Json(nullptr) : Json(pulled.yanked)},
               {"output", context.dry_run ? Json(nullptr) : Json(output)}});
    return {};
  }
  context.out << fmt::format("{}@{}, identity {}, {} bytes\n", entry.name.text(),
                             entry.version.text(), entry.identity, entry.bytes())
              << signers << "\n";
  return {ExitCode::kDone, context.dry_run ? "" : output};
}

}  // namespace oscar
