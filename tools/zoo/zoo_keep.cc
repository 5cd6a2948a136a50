// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo yank, gc and mirror: the verbs for the maintainer of a zoo.
#include <fmt/format.h>

#include "linalg/base/error.h"
#include "tools/zoo/zoo_sign.h"
#include "tools/zoo/zoo_verbs.h"
#include "zoo/keep/gc.h"
#include "zoo/keep/mirror.h"
#include "zoo/store/yank.h"

namespace oscar {
namespace {

constexpr auto kKeepScope = OptionScope::kRun;

std::function<void()> Waiting(CommandContext& context) {
  return [&context, said = false]() mutable {
    if (!said) context.log.Info("waiting", "waiting for another process that writes to this zoo");
    said = true;
    context.stop.ThrowIfRequested("nothing was changed");
  };
}

Json DigestsJson(const std::vector<FileDigest>& blobs) {
  Json json = Json::array();
  for (const FileDigest& blob : blobs)
    json.push_back({{"sha256", blob.sha256}, {"size", blob.size}});
  return json;
}

}  // namespace

OptionTable YankTable(ZooOptions* options) {
  OptionTable table("oscar-zoo yank",
                    "Yanks a version: it can still be pulled by its version number, with the "
                    "reason shown, but is no longer offered otherwise.");
  AddReference(options, true, "ORG/MODEL@X.Y.Z or ORG/MODEL@sha256:...", &table);
  AddZoo(options, &table);
  table.Add(&options->reason, {.name = "reason",
                               .help = "the reason, in a sentence, for users who pull this version",
                               .unit = "text",
                               .scope = kKeepScope,
                               .required = true});
  AddJson(options, &table);
  table.Example("oscar-zoo yank Qwen/Qwen3-8B@0.2.0 --reason 'calibrated with the wrong template'",
                "'latest' moves to the highest version that is not yanked");
  return table;
}

OptionTable GcTable(ZooOptions* options) {
  OptionTable table(
      "oscar-zoo gc",
      "Removes blobs that no version uses, and unfinished files, but never a version.");
  AddZoo(options, &table);
  AddJson(options, &table);
  table.Example("oscar-zoo gc --zoo /share/zoo --dry-run", "shows what would be removed");
  return table;
}

OptionTable MirrorTable(ZooOptions* options) {
  OptionTable table(
      "oscar-zoo mirror",
      "Copies the new versions of a zoo into one on this disk, with the same checks as pull.");
  table.Add(&options->output, {.name = "dir",
                               .help = "directory of the copy: an existing zoo, or a new directory",
                               .scope = kKeepScope,
                               .positional = true,
                               .required = true});
  AddSource(options, &table);
  table.Add(&options->name,
            {.name = "name",
             .help = "copy only this name",
             .unit = "org/model",
             .check = CheckedBy([](const std::string& text) { ParseZooName(text, "--name"); }),
             .scope = kKeepScope});
  AddJson(options, &table);
  table.Example("oscar-zoo mirror /srv/zoo --zoo https://zoo.example.org",
                "repeat the command to fetch new versions");
  return table;
}

CommandResult YankVerb(const ZooOptions& options, CommandContext& context) {
  const Zoo zoo = Zoo::Open(ZooPath(options));
  const ZooReference reference = ParseZooReference(options.reference);
  if (!reference.version && !reference.identity)
    throw UsageError("name a version: ORG/MODEL@X.Y.Z or ORG/MODEL@sha256:...");
  const ZooVersion version = zoo.Resolve(reference);
  if (!context.dry_run) Yank(zoo, reference.name, version, options.reason, Waiting(context));
  const std::string name = reference.name.text() + "@" + version.text();
  const auto latest = zoo.Highest(reference.name);
  const bool stands = latest && YankReason(zoo, reference.name, *latest).empty();
  const std::string now =
      context.dry_run ? "" : SnapshotCommand(options, zoo, reference.name, version);
  if (options.json) {
    PrintJson(context, "yank",
              {{"zoo", zoo.path().string()},
               {"now", now.empty() ? Json(nullptr) : Json(now)},
               {"name", reference.name.text()},
               {"version", version.text()},
               {"reason", options.reason},
               {"latest", stands ? Json(latest->text()) : Json(nullptr)}});
    return {};
  }
  context.out << fmt::format(
      "{} {}; {}\n", context.dry_run ? "would yank" : "yanked", name,
      stands ? "the latest is " + latest->text() : "every version is yanked");
  if (!now.empty()) context.out << "now: " << now << "\n";
  return {};
}

CommandResult GcVerb(const ZooOptions& options, CommandContext& context) {
  const Zoo zoo = Zoo::Open(ZooPath(options));
  const Collected collected = CollectGarbage(zoo, context.dry_run, Waiting(context));
  if (options.json) {
    PrintJson(context, "gc",
              {{"zoo", zoo.path().string()},
               {"removed", !context.dry_run},
               {"blobs", DigestsJson(collected.blobs)},
               {"unfinished", collected.unfinished},
               {"bytes", collected.bytes}});
    return {};
  }
  context.out << fmt::format("{} {} blobs that no version uses and {} unfinished files, {}\n",
                             context.dry_run ? "would remove" : "removed", collected.blobs.size(),
                             collected.unfinished, ByteText(static_cast<double>(collected.bytes)));
  return {};
}

CommandResult MirrorVerb(const ZooOptions& options, CommandContext& context) {
  FetchOptions fetch;
  fetch.transfer = TransferOf(options, context,
                              "the files fetched so far are kept; repeat the command to continue");
  const ZooSource source = OpenSource(ZooAddressOf(options), fetch.transfer);
  std::optional<ZooName> name;
  if (!options.name.empty()) name = ParseZooName(options.name, "--name");
  if (context.dry_run)
    throw UsageError("mirror has no --dry-run; oscar-zoo ls --zoo ZOO lists the versions");
  TransferLine line(context, "mirroring " + source.address);
  fetch.progress = [&](const std::string& file, uint64_t done, uint64_t total) {
    line.Show(file, done, total);
  };
  const Mirrored mirrored = Mirror(source, options.output, name, fetch, Waiting(context));
  line.Done(mirrored.counts);
  const ExitCode exit_code = mirrored.problems.empty() ? ExitCode::kDone : ExitCode::kInput;
  if (options.json) {
    PrintJson(context, "mirror",
              {{"zoo", source.address},
               {"output", options.output},
               {"versions", mirrored.versions},
               {"added", mirrored.added},
               {"yanked", mirrored.yanked},
               {"signatures", mirrored.signatures},
               {"fetched_bytes", mirrored.counts.bytes},
               {"problems", mirrored.problems}});
    return {exit_code, ""};
  }
  for (const std::string& problem : mirrored.problems)
    context.out << "problem: " << problem << "\n";
  context.out << fmt::format(
      "{} versions, {} of them new; {} newly yanked, {} new signatures; {} "
      "problems\n",
      mirrored.versions, mirrored.added.size(), mirrored.yanked.size(), mirrored.signatures,
      mirrored.problems.size());
  return {exit_code, exit_code == ExitCode::kDone ? options.output : ""};
}

}  // namespace oscar
