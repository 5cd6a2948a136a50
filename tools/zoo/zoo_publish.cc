// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo publish and push: publish to a zoo on this disk, a model repository, or the Hub.
#include <fmt/format.h>

#include <chrono>

#include "capture/files/quote.h"
#include "capture/files/removed_names.h"
#include "capture/files/temporary_directory.h"
#include "linalg/base/error.h"
#include "tools/cli/build_info.h"
#include "tools/cli/child_program.h"
#include "tools/zoo/zoo_sign.h"
#include "tools/zoo/zoo_verbs.h"
#include "zoo/keep/publish.h"
#include "zoo/source/hub_source.h"
#include "zoo/source/model_repository.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/yank.h"
#include "zoo/trust/signature_store.h"

namespace fs = std::filesystem;

namespace oscar {

namespace {

PublishOptions PublishOptionsOf(const ZooOptions& options, CommandContext& context) {
  PublishOptions publish;
  if (!options.name.empty()) publish.name = ParseZooName(options.name, "--name");
  if (!options.version.empty()) publish.version = ParseZooVersion(options.version);
  if (options.ungated && !options.gate.empty())
    throw UsageError("--ungated and --gate contradict each other; give one of them");
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
  publish.waiting = [&context, said = false]() mutable {
    if (!said) context.log.Info("waiting", "waiting for another publisher of this name");
    said = true;
    context.stop.ThrowIfRequested("nothing was published");
  };
  return publish;
}

// Writes a version of a zoo as a model repository, with its signatures.
Published RepositoryOfVersion(const ZooOptions& options, bool dry_run, const fs::path& repository) {
  if (!options.name.empty() || !options.version.empty() || !options.model.empty() ||
      !options.gate.empty() || options.ungated) {
    throw UsageError(
        "--name, --version, --model, --gate and --ungated only apply to an artifact; a version of "
        "a zoo is pushed as it was published");
  }
  const Zoo zoo = Zoo::Open(ZooPath(options));
  const ZooReference reference = ParseZooReference(options.artifact);
  const ZooVersion version = zoo.Resolve(reference);
  Published out;
  out.entry = zoo.Read(reference.name, version);
  if (const std::string yanked = YankReason(zoo, reference.name, version); !yanked.empty())
    throw InputError(fmt::format("{} was yanked: {}", options.artifact, Escaped(yanked)));
  if (dry_run) return out;
  WriteRepository(
      out.entry,
      ReadSmallFile(EntryPath(zoo.path(), reference.name, version), kZooJsonLimits.max_bytes),
      [&](const std::string& file) {
        return BlobPath(zoo.path(), out.entry.files.at(file).sha256);
      },
      ReadSignatures(zoo, reference.name, version), repository);
  return out;
}

// Prepares the repository to upload. Sets `already` if the Hub has the same content (`before`).
// Throws InputError if the new version may not replace that.
Published PrepareRepository(const ZooOptions& options, CommandContext& context,
                            const std::optional<ZooEntry>& before, const fs::path& repository) {
  Published out;
  if (!fs::exists(options.artifact) && !FindZooAddress(options).empty()) {
    out = RepositoryOfVersion(options, context.dry_run, repository);
  } else {
    PublishOptions publish = PublishOptionsOf(options, context);
    if (before && !publish.version) publish.version = before->version.NextMinor();
    out = PublishRepository(repository, options.artifact, GeometryOf(options), publish);
  }
  if (!before || !out.problems.empty()) return out;
  out.already = before->name == out.entry.name && before->identity == out.entry.identity;
  if (out.already) {
    out.entry = *before;
  } else if (before->name != out.entry.name || before->version >= out.entry.version) {
    throw InputError(
        fmt::format("{}@{} may not follow {}@{}, which {} contains: versions never change, and a "
                    "repository has a single name; give a higher version or another repository",
                    out.entry.name.text(), out.entry.version.text(), before->name.text(),
                    before->version.text(), options.output));
  }
  return out;
}

}  // namespace

CommandResult PushVerb(const ZooOptions& options, CommandContext& context) {
  const ZooAddress target = ParseZooAddress(options.output);
  if (!target.repository || target.pinned)
    throw UsageError(fmt::format("{}: expected hf:ORG/NAME", Quoted(options.output)));
  const fs::path hf = ProgramOnPath("hf");
  if (hf.empty()) {
    throw ResourceError(
        "hf, the Hub's own client, is not on PATH; install it with: pip install -U "
        "huggingface_hub");
  }
  const std::string id = target.reference.name.text();
  const TemporaryDirectory scratch("push");
  const fs::path repository = scratch.path() / "repository";
  const Published made = PrepareRepository(
      options, context, ReadHubEntry({id, "main"}, TransferOf(options, context)), repository);
  const std::string which = made.entry.name.text() + "@" + made.entry.version.text(),
                    pull = "oscar-zoo pull " + options.output;
  const bool refused = !made.problems.empty(),
             pushed = !refused && !made.already && !context.dry_run;
  if (pushed) {
    RunChild(hf,
             {"upload", id, repository, ".", "--commit-message",
              fmt::format("{}, identity {}", which, made.entry.identity)},
             options.output + " was not uploaded", ChildOutput::kToError);
  }
  const ExitCode exit_code = refused ? ExitCode::kGateFailed : ExitCode::kDone;
  if (options.json) {
    PrintJson(context, "push",
              {{"repository", options.output},
               {"pushed", pushed},
               {"already_pushed", made.already},
               {"name", made.entry.name.text()},
               {"version", refused ? Json(nullptr) : Json(made.entry.version.text())},
               {"identity", made.entry.identity},
               {"problems", made.problems},
               {"pull", refused ? Json(nullptr) : Json(pull)}});
    return {exit_code, ""};
  }
  for (const std::string& problem : made.problems)
    context.log.Error("not_pushed", fmt::format("{}: {}", options.artifact, problem));
  if (refused) return {exit_code, ""};
  context.out << fmt::format("{} {}, identity {}\npull it: {}\n",
                             made.already ? "already pushed:"
                             : pushed     ? "pushed"
                                          : "would push",
                             which, made.entry.identity, pull);
  return {};
}

CommandResult PublishVerb(const ZooOptions& options, CommandContext& context) {
  const std::string address = ZooAddressOf(options);
  const bool elsewhere = address.starts_with("hf:");
  if (address.starts_with("oci:"))
    throw UsageError(fmt::format("{}: oci: {}", address, RemovedHint("oci:")));
  if (IsRemoteAddress(address) && !elsewhere) {
    throw UsageError(address +
                     ": cannot publish over a network; publish to a directory and copy it to the "
                     "server");
  }
  const PublishOptions publish = PublishOptionsOf(options, context);
  const Published published =
      elsewhere
          ? PublishRepository(address.substr(3), options.artifact, GeometryOf(options), publish)
          : Publish(Zoo::Open(address), options.artifact, GeometryOf(options), publish);
  const ZooEntry& entry = published.entry;
  const bool refused = !published.problems.empty();
  const bool made = !refused && !context.dry_run;
  const ExitCode exit_code = refused ? ExitCode::kGateFailed : ExitCode::kDone;
  const fs::path path = elsewhere ? fs::path(address.substr(address.find(':') + 1))
                                  : EntryPath(address, entry.name, entry.version);
  if (!published.index_problem.empty()) {
    context.log.Error(
        "index",
        fmt::format(
            "published, but the zoo's index could not be updated; the next publish updates it: {}",
            published.index_problem));
  }
  const std::string now =
      made && !elsewhere ? SnapshotCommand(options, Zoo::Open(address), entry.name, entry.version)
                         : "";
  if (options.json) {
    Json json = {{"zoo", address},
                 {"now", now.empty() ? Json(nullptr) : Json(now)},
                 {"published", made && !published.already},
                 {"already_published", published.already},
                 {"name", entry.name.text()},
                 {"version", refused ? Json(nullptr) : Json(entry.version.text())},
                 {"identity", entry.identity},
                 {"problems", published.problems},
                 {"warnings", published.warnings},
                 {"gates", published.gates},
                 {"validation", entry.validation},
                 {"new_blobs", published.new_blobs},
                 {"new_bytes", published.new_bytes},
                 {"latest", made ? Json(published.latest.text()) : Json(nullptr)},
                 {"entry", made ? Json(path.string()) : Json(nullptr)},
                 {"pull", made ? Json(PullLine(address, entry)) : Json(nullptr)}};
    PrintJson(context, "publish", std::move(json));
    return {exit_code, ""};
  }
  for (const std::string& problem : published.problems)
    context.log.Error("not_published", fmt::format("{}: {}", options.artifact, problem));
  if (refused) return {exit_code, ""};
  for (const std::string& warning : published.warnings)
    context.log.Info("warning", "warning: " + warning);
  context.out << fmt::format("{} {}@{}, identity {}\n",
                             published.already ? "already published:"
                             : made            ? "published"
                                               : "would publish",
                             entry.name.text(), entry.version.text(), entry.identity);
  if (!made) return {};
  if (!elsewhere) {
    context.out << fmt::format("{} new blobs, {} bytes; latest is {}\n", published.new_blobs,
                               published.new_bytes, published.latest.text());
  }
  context.out << "pull it: " << PullLine(address, entry) << "\n";
  if (address.starts_with("hf:"))
    context.out << fmt::format("upload it: hf upload {} {} .\n", entry.name.text(), path.string());
  if (!now.empty()) context.out << "now: " << now << "\n";
  return {ExitCode::kDone, path.string()};
}

}  // namespace oscar
