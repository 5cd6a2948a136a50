// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo: a versioned store of artifacts. It does not load LibTorch. To repeat measurements
// (verify --model), it runs oscar-validate. zoo/json_output.md describes the JSON objects of
// --json, whose members must not be renamed.
#include <fmt/format.h>

#include <functional>

#include "capture/checkpoint/model_location.h"
#include "capture/files/digest_json.h"
#include "capture/files/sandbox.h"
#include "linalg/base/error.h"
#include "tools/cli/verbs.h"
#include "tools/zoo/run_validate.h"
#include "tools/zoo/zoo_options.h"
#include "tools/zoo/zoo_sign.h"
#include "tools/zoo/zoo_verbs.h"
#include "zoo/keep/verify.h"
#include "zoo/lint/lint.h"
#include "zoo/signing/trust_error.h"
#include "zoo/store/zoo.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// With --json, a failure is printed as an object too.
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

CommandResult Init(const ZooOptions& options, CommandContext& context) {
  if (!options.output.empty() && !options.zoo.empty() && options.output != options.zoo)
    throw UsageError("init: DIR and --zoo name different directories; give one of them");
  const fs::path path = options.output.empty() ? ZooPath(options) : fs::path(options.output);
  if (!context.dry_run) InitZoo(path);
  if (options.json) {
    PrintJson(context, "init", {{"zoo", path.string()}});
    return {};
  }
  return {ExitCode::kDone, path.string()};
}

CommandResult VerifyVerb(const ZooOptions& options, CommandContext& context) {
  if (!options.directory.empty()) return VerifyDirectory(options, context);
  if (!options.signature.empty() || !options.ignored.empty() || options.ignore_unsigned)
    throw UsageError("--signature, --ignore and --ignore-unsigned need --directory");
  const std::optional<TrustFile> trust = TrustOf(options);
  const Zoo zoo = Zoo::Open(ZooPath(options));
  std::optional<ZooReference> reference;
  if (!options.reference.empty()) reference = ParseZooReference(options.reference);
  std::optional<Remeasure> remeasure;
  if (!options.model.empty()) {
    if (!reference)
      throw UsageError("--model: also give the NAME whose validations are to be repeated");
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
    throw UsageError("--data and --device need --model");
  }
  // Remeasuring starts a program, and --trust writes a file, which the sandbox would prevent.
  if (!remeasure && !trust) EnterReadOnlySandbox();
  const Verified verified = Verify(zoo, reference, remeasure);
  // Checks signatures only if all versions are intact. Otherwise something was changed after
  // signing, and kAltered is reported.
  std::vector<VersionVerdict> verdicts;
  if (trust && verified.problems.empty()) verdicts = JudgeVersions(*trust, zoo, reference);
  const ExitCode exit_code = verified.problems.empty() ? CodeOf(verdicts)
                             : trust                   ? TrustExit::kAltered
                                                       : ExitCode::kInput;
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
               {"ok", exit_code == ExitCode::kDone},
               {"trust", VerdictsToJson(verdicts)},
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
  for (const auto& [name, version, verdict] : verdicts) {
    const std::string why = verdict.Reason(trust->policy);
    context.out << fmt::format("{}: {}@{}{}{}\n", verdict.word(), name.text(), version.text(),
                               why.empty() ? "" : " ", why);
    if (!verdict.note.empty()) context.out << fmt::format("note: {}\n", verdict.note);
  }
  for (const FileDigest& blob : verified.unreferenced)
    context.out << fmt::format("note: blobs/sha256/{}: {} bytes that no entry uses\n", blob.sha256,
                               blob.size);
  context.out << fmt::format("{} entries, {} blobs, {} bytes checked{}: {} problems\n",
                             verified.entries, verified.blobs, verified.bytes,
                             remeasure ? fmt::format(", {} measured again", verified.measured) : "",
                             verified.problems.size());
  return {exit_code, ""};
}

CommandResult LintVerb(const ZooOptions& options, CommandContext& context) {
  EnterReadOnlySandbox();  // it reads untrusted files and writes to the terminal
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
  context.out << fmt::format("{} files checked: {} errors, {} warnings, {} notes\n", report.files,
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
  static constexpr Row kRows[] = {{"init", InitTable, Init},
                                  {"publish", PublishTable, PublishVerb},
                                  {"push", PushTable, PushVerb},
                                  {"ls", LsTable, LsVerb},
                                  {"info", InfoTable, InfoVerb},
                                  {"search", SearchTable, SearchVerb},
                                  {"for", ForTable, ForVerb},
                                  {"pull", PullTable, PullVerb},
                                  {"verify", VerifyTable, VerifyVerb},
                                  {"lint", LintTable, LintVerb},
                                  {"diff", DiffTable, DiffVerb},
                                  {"yank", YankTable, YankVerb},
                                  {"gc", GcTable, GcVerb},
                                  {"mirror", MirrorTable, MirrorVerb},
                                  {"site", SiteTable, SiteVerb},
                                  {"sign", SignTable, SignVerb},
                                  {"snapshot", SnapshotTable, SnapshotVerb}};
  VerbCommand command{
      "oscar-zoo",
      "A versioned store of rotation artifacts: publish validated artifacts, and check those that "
      "others published.",
      {},
      "A zoo is a directory, https://host/path (any static server), hf:DIR or hf:ORG/NAME. Give it "
      "as --zoo ZOO or in the environment variable OSCAR_ZOO. Every verb takes --json."};
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
