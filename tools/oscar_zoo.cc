// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo: a versioned store of artifacts. Loads no LibTorch; what it measures again (verify
// --model), oscar-validate measures. The JSON objects of --json are
// described in zoo/README.md; their members are not renamed.
#include <fmt/format.h>

#include <chrono>
#include <functional>

#include "capture/checkpoint/model_location.h"
#include "capture/files/digest_json.h"
#include "capture/files/quote.h"
#include "capture/files/sandbox.h"
#include "export/artifact/artifact_format.h"
#include "export/evaluate/gate.h"
#include "linalg/error.h"
#include "tools/cli/build_info.h"
#include "tools/cli/text_table.h"
#include "tools/cli/verbs.h"
#include "tools/run_validate.h"
#include "tools/zoo_options.h"
#include "zoo/blob_store.h"
#include "zoo/lint.h"
#include "zoo/publish.h"
#include "zoo/pull.h"
#include "zoo/verify.h"
#include "zoo/zoo.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using VerbFunction = CommandResult (*)(const ZooOptions&, CommandContext&);

// Prints the object of a verb; in text mode it is the verb that prints.
void PrintJson(CommandContext& context, std::string_view verb, Json object) {
  object["verb"] = verb;
  context.out << CanonicalJson(object);
}

// With --json a failure is an object too.
CommandFunction Guarded(std::string verb, VerbFunction function, const ZooOptions* options) {
  return [=](CommandContext& context) {
    try {
      return function(*options, context);
    } catch (const std::exception& error) {
      if (options->json) {
        const Failure failure = DescribeFailure(error);
        PrintJson(
            context, verb,
            {{"error",
              {{"exit_code", static_cast<int>(failure.exit_code)}, {"message", failure.message}}}});
      }
      throw;
    }
  };
}

Json EntrySummary(const ZooEntry& entry, bool latest) {
  return {
      {"name", entry.name.text()},      {"version", entry.version.text()}, {"latest", latest},
      {"identity", entry.identity},     {"bytes", entry.bytes()},          {"model", entry.model},
      {"validation", entry.validation}, {"publisher", entry.publisher}};
}

std::string Metric(const ZooEntry& entry, const char* name) {
  const Json metrics = entry.validation.value("metrics", Json::object());
  const bool there = metrics.is_object() && metrics.contains(name) && metrics.at(name).is_number();
  return there ? fmt::format("{:.4g}", metrics.at(name).get<double>()) : "-";
}

// `passed` for an entry that passed a gate.
std::string GateText(const ZooEntry& entry, const std::string& passed) {
  return entry.validation.contains("gate") ? passed : "ungated";
}

std::optional<ModelGeometry> GeometryOf(const ZooOptions& options) {
  if (options.model.empty()) return std::nullopt;
  return ReadModelGeometry(ResolveModel(options.model).directory);
}

CommandResult Init(const ZooOptions& options, CommandContext& context) {
  if (!options.output.empty() && !options.zoo.empty() && options.output != options.zoo)
    throw UsageError("init: DIR and --zoo name two directories; give one");
  const fs::path path = options.output.empty() ? ZooPath(options) : fs::path(options.output);
  if (!context.dry_run) InitZoo(path);
  if (options.json) {
    PrintJson(context, "init", {{"zoo", path.string()}});
    return {};
  }
  return {ExitCode::kDone, path.string()};
}

CommandResult PublishVerb(const ZooOptions& options, CommandContext& context) {
  const Zoo zoo = Zoo::Open(ZooPath(options));
  PublishOptions publish;
  if (!options.name.empty()) publish.name = ParseZooName(options.name, "--name");
  if (!options.version.empty()) publish.version = ParseZooVersion(options.version);
  if (options.ungated && !options.gate.empty())
    throw UsageError("--ungated says that there is no gate; --gate names one: give one of them");
  publish.demands = {.gate = options.gate, .ungated = options.ungated};
  publish.dry_run = context.dry_run;
  const BuildInfo build = ThisBuild();
  publish.publisher = {
      {"program", "oscar"},
      {"version", build.version},
      {"git_commit", build.git_commit},
      {"published_at_unix", std::chrono::duration_cast<std::chrono::seconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count()}};
  bool said = false;
  publish.waiting = [&] {
    if (!said) context.log.Info("waiting", "waiting for another publisher of this name");
    said = true;
    context.stop.ThrowIfRequested("nothing was published");
  };
  const Published published = Publish(zoo, options.artifact, GeometryOf(options), publish);
  const ZooEntry& entry = published.entry;
  const bool refused = !published.problems.empty();
  const bool made = !refused && !context.dry_run;
  const ExitCode exit_code = refused ? ExitCode::kGateFailed : ExitCode::kDone;
  const fs::path path = EntryPath(zoo.path(), entry.name, entry.version);
  if (options.json) {
    Json json = {{"zoo", zoo.path().string()},
                 {"published", made && !published.already},
                 {"already_published", published.already},
                 {"name", entry.name.text()},
                 {"version", refused ? Json(nullptr) : Json(entry.version.text())},
                 {"identity", entry.identity},
                 {"problems", published.problems},
                 {"gates", published.gates},
                 {"validation", entry.validation},
                 {"new_blobs", published.new_blobs},
                 {"new_bytes", published.new_bytes},
                 {"latest", made ? Json(published.latest.text()) : Json(nullptr)},
                 {"entry", made ? Json(path.string()) : Json(nullptr)}};
    PrintJson(context, "publish", std::move(json));
    return {exit_code, ""};
  }
  for (const std::string& problem : published.problems)
    context.log.Error("not_published", fmt::format("{}: {}", options.artifact, problem));
  if (refused) return {exit_code, ""};
  context.out << fmt::format("{} {}@{}, identity {}\n",
                             published.already ? "already published:"
                             : made            ? "published"
                                               : "would publish",
                             entry.name.text(), entry.version.text(), entry.identity);
  if (!made) return {};
  context.out << fmt::format("{} new blobs, {} bytes; latest is {}\n", published.new_blobs,
                             published.new_bytes, published.latest.text());
  return {ExitCode::kDone, path.string()};
}

CommandResult Ls(const ZooOptions& options, CommandContext& context) {
  const Zoo zoo = Zoo::Open(ZooPath(options));
  TextTable table({"name", "version", "", ">bytes", ">kl", ">ppl ratio", "gate", "identity"});
  Json entries = Json::array(), problems = Json::array();
  for (const ZooName& name : zoo.Names()) {
    std::optional<ZooVersion> latest;
    const auto guarded = [&](const auto& read) {
      try {
        read();
      } catch (const InputError& error) {
        problems.push_back(error.what());
      }
    };
    guarded([&] { latest = zoo.Resolve({name, std::nullopt}); });
    for (const ZooVersion& version : zoo.Versions(name)) {
      guarded([&] {
        const ZooEntry entry = zoo.Read(name, version);
        entries.push_back(EntrySummary(entry, latest == version));
        table.AddRow({name.text(), version.text(), latest == version ? "latest" : "",
                      fmt::format("{}", entry.bytes()), Metric(entry, "kl"),
                      Metric(entry, "ppl_ratio"), GateText(entry, "passed"),
                      entry.identity.substr(0, 12)});
      });
    }
  }
  const ExitCode exit_code = problems.empty() ? ExitCode::kDone : ExitCode::kInput;
  if (options.json) {
    PrintJson(context, "ls",
              {{"zoo", zoo.path().string()}, {"entries", entries}, {"problems", problems}});
    return {exit_code, ""};
  }
  context.out << table.ToString();
  for (const Json& problem : problems) context.log.Error("damaged", problem.get<std::string>());
  return {exit_code, ""};
}

std::string TextMember(const Json& object, const char* key) {
  const Json value = object.is_object() ? object.value(key, Json()) : Json();
  return value.is_string() ? Escaped(value.get<std::string>()) : value.dump();
}

// What people want to know of an entry: whose it is, what it does, whether that was held against
// anything, what is in it.
std::string InfoText(const ZooEntry& entry, bool latest, const Json& versions) {
  std::string facts;
  const auto add = [&](std::string_view name, const std::string& value) {
    facts += fmt::format("{:<16} {}\n", name, value);
  };
  std::string all;
  for (const Json& version : versions)
    all += (all.empty() ? "" : ", ") + version.get<std::string>();
  add("name", fmt::format("{}@{}{}", entry.name.text(), entry.version.text(),
                          latest ? ", the latest" : ""));
  add("versions", all);
  add("identity", entry.identity);
  add("model", TextMember(entry.model, "id"));
  if (entry.model.contains("revision")) add("revision", TextMember(entry.model, "revision"));
  add("headline", TextMember(entry.validation, "headline_arm"));
  const Json metrics = entry.validation.value("metrics", Json::object());
  for (const GateMetric& metric : GateMetrics()) {
    const std::string name(metric.name);
    if (metrics.is_object() && metrics.contains(name))
      add(metric.name, fmt::format("{:<12} {}", Metric(entry, name.c_str()), metric.meaning));
  }
  add("gate",
      GateText(entry, "passed: " + TextMember(entry.validation.value("gate", Json()), "text")));
  add("published", fmt::format("by {} {}", TextMember(entry.publisher, "program"),
                               TextMember(entry.publisher, "version")));
  TextTable files({"file", ">bytes", "sha256"});
  for (const auto& [name, digest] : entry.files)
    files.AddRow({name, fmt::format("{}", digest.size), digest.sha256});
  return facts + "\n" + files.ToString();
}

CommandResult Info(const ZooOptions& options, CommandContext& context) {
  const Zoo zoo = Zoo::Open(ZooPath(options));
  const ZooReference reference = ParseZooReference(options.reference);
  const ZooEntry entry = zoo.Read(reference.name, zoo.Resolve(reference));
  const ZooVersion latest = zoo.Resolve({reference.name, std::nullopt});
  Json json = EntrySummary(entry, latest == entry.version);
  json["zoo"] = zoo.path().string();
  json["versions"] = Json::array();
  for (const ZooVersion& version : zoo.Versions(reference.name))
    json["versions"].push_back(version.text());
  json["files"] = Json::object();
  for (const auto& [name, digest] : entry.files) json["files"][name] = DigestToJson(digest);
  if (options.json) {
    PrintJson(context, "info", std::move(json));
    return {};
  }
  context.out << InfoText(entry, latest == entry.version, json.at("versions"));
  return {};
}

CommandResult VerifyVerb(const ZooOptions& options, CommandContext& context) {
  const Zoo zoo = Zoo::Open(ZooPath(options));
  std::optional<ZooReference> reference;
  if (!options.reference.empty()) reference = ParseZooReference(options.reference);
  std::optional<Remeasure> remeasure;
  if (!options.model.empty()) {
    if (!reference) throw UsageError("--model: measure one NAME again, not the whole zoo");
    const fs::path model = ResolveModel(options.model).directory;
    remeasure = {ReadModelGeometry(model), [&, model](const fs::path& artifact, const Json& how) {
                   return RunValidate({.artifact = artifact,
                                       .model = model,
                                       .configuration = how,
                                       .data = options.data,
                                       .device = options.device},
                                      context.log);
                 }};
  } else if (!options.data.empty() || options.device != ZooOptions().device) {
    throw UsageError("--data and --device are of --model: give it too");
  }
  const Verified verified = Verify(zoo, reference, remeasure);
  const ExitCode exit_code = verified.problems.empty() ? ExitCode::kDone : ExitCode::kInput;
  const auto list = [](const std::vector<ZooProblem>& problems) {
    Json json = Json::array();
    for (const auto& [where, what] : problems) json.push_back({{"where", where}, {"what", what}});
    return json;
  };
  if (options.json) {
    Json unreferenced = Json::array();
    for (const FileDigest& blob : verified.unreferenced) unreferenced.push_back(DigestToJson(blob));
    PrintJson(context, "verify",
              {{"zoo", zoo.path().string()},
               {"ok", verified.problems.empty()},
               {"entries", verified.entries},
               {"blobs", verified.blobs},
               {"measured", verified.measured},
               {"bytes", verified.bytes},
               {"problems", list(verified.problems)},
               {"notes", list(verified.notes)},
               {"unreferenced", unreferenced}});
    return {exit_code, ""};
  }
  for (const auto& [where, what] : verified.problems)
    context.out << fmt::format("problem: {}: {}\n", where, what);
  for (const auto& [where, what] : verified.notes)
    context.out << fmt::format("note: {}: {}\n", where, what);
  for (const FileDigest& blob : verified.unreferenced)
    context.out << fmt::format("note: blobs/sha256/{}: {} bytes that no entry names\n", blob.sha256,
                               blob.size);
  context.out << fmt::format("{} entries, {} blobs, {} bytes checked{}: {} problems\n",
                             verified.entries, verified.blobs, verified.bytes,
                             remeasure ? fmt::format(", {} measured again", verified.measured) : "",
                             verified.problems.size());
  return {exit_code, ""};
}

CommandResult PullVerb(const ZooOptions& options, CommandContext& context) {
  const Zoo zoo = Zoo::Open(ZooPath(options));
  const ZooReference reference = ParseZooReference(options.reference);
  const ZooEntry entry = context.dry_run ? zoo.Read(reference.name, zoo.Resolve(reference))
                                         : Pull(zoo, reference, options.output);
  if (options.json) {
    PrintJson(context, "pull",
              {{"zoo", zoo.path().string()},
               {"name", entry.name.text()},
               {"version", entry.version.text()},
               {"identity", entry.identity},
               {"bytes", entry.bytes()},
               {"output", context.dry_run ? Json(nullptr) : Json(options.output)}});
    return {};
  }
  context.out << fmt::format("{}@{}, identity {}, {} bytes\n", entry.name.text(),
                             entry.version.text(), entry.identity, entry.bytes());
  return {ExitCode::kDone, context.dry_run ? "" : options.output};
}

CommandResult LintVerb(const ZooOptions& options, CommandContext& context) {
  EnterReadOnlySandbox();  // it reads strangers' files and writes to the terminal
  const LintReport report =
      Lint({options.paths.begin(), options.paths.end()}, {.model = GeometryOf(options)});
  const ExitCode exit_code = report.has_errors() ? ExitCode::kGateFailed : ExitCode::kDone;
  const Json json = LintToJson(report);
  if (options.json) {
    PrintJson(context, "lint", json);
    return {exit_code, ""};
  }
  for (const LintFinding& finding : report.findings) context.out << LintLine(finding) << '\n';
  const Json& counts = json.at("counts");
  context.out << fmt::format("{} looked at: {} errors, {} warnings, {} notes\n", report.files,
                             counts.at("error").get<int>(), counts.at("warning").get<int>(),
                             counts.at("note").get<int>());
  return {exit_code, ""};
}

VerbCommand ZooCommand(ZooOptions* options) {
  struct Row {
    const char* verb;
    OptionTable (*table)(ZooOptions*);
    VerbFunction function;
  };
  static constexpr Row kRows[] = {
      {"init", InitTable, Init},     {"publish", PublishTable, PublishVerb},
      {"ls", LsTable, Ls},           {"info", InfoTable, Info},
      {"pull", PullTable, PullVerb}, {"verify", VerifyTable, VerifyVerb},
      {"lint", LintTable, LintVerb}};
  VerbCommand command{"oscar-zoo",
                      "A versioned store of rotation artifacts: publish what was proven, check "
                      "what others published.",
                      {},
                      "A zoo is a directory: --zoo DIR, or OSCAR_ZOO in the environment. Every "
                      "verb takes --json."};
  for (const Row& row : kRows)
    command.verbs.push_back({row.table(options), Guarded(row.verb, row.function, options)});
  return command;
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  oscar::ZooOptions options;
  return oscar::RunVerbs(argc, argv, oscar::ZooCommand(&options));
}
