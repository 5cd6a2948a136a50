// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo publish: into a zoo on this disk or a model repository.
#include <fmt/format.h>

#include <chrono>

#include "capture/files/removed_names.h"
#include "linalg/error.h"
#include "tools/cli/build_info.h"
#include "tools/zoo_sign.h"
#include "tools/zoo_verbs.h"
#include "zoo/keep/publish.h"

namespace fs = std::filesystem;

namespace oscar {

CommandResult PublishVerb(const ZooOptions& options, CommandContext& context) {
  const std::string address = ZooAddressOf(options);
  const bool elsewhere = address.starts_with("hf:");
  if (address.starts_with("oci:"))
    throw UsageError(fmt::format("{}: oci: {}", address, RemovedHint("oci:")));
  if (IsRemoteAddress(address) && !elsewhere) {
    throw UsageError(address +
                     ": nothing is published over a network; publish to a directory and copy it to "
                     "the server");
  }
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
    context.log.Error("index", fmt::format("published, but the zoo's index is not up to date; "
                                           "the next publish writes it: {}",
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
