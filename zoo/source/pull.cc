// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/source/pull.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "capture/files/atomic_file.h"
#include "capture/files/posix_file.h"
#include "capture/files/sandbox.h"
#include "linalg/base/error.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/zoo_lock.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Whether `found` agrees with `said` on every member that both have.
bool SaysTheSame(const Json& said, const Json& found) {
  if (!said.is_object() || !found.is_object()) return said == found;
  for (const auto& [key, value] : said.items()) {
    if (found.contains(key) && !SaysTheSame(value, found.at(key))) return false;
  }
  return true;
}

// The folder OUTPUT.partial. Only one pull at a time can use it.
class PartialPull {
 public:
  explicit PartialPull(const fs::path& output) : path_(output.string() + ".partial") {
    if (mkdir(path_.c_str(), 0777) != 0 && errno != EEXIST)
      ThrowResource("create directory", path_, errno);
    if (!fs::is_directory(fs::symlink_status(path_)))
      throw InputError(path_.string() + ": is not a directory; move it away");
    lock_.emplace(path_ / "lock", LockKind::kExclusive, [&] {
      throw InputError(path_.string() + ": in use by another pull; wait for it to finish");
    });
  }

  const fs::path& path() const { return path_; }

  // Removes the files that pulls created, and the folder if nothing else is in it. The user may
  // have had files in a folder of this name.
  void Remove(const ZooEntry& entry) {
    for (const auto& [name, digest] : entry.files)
      for (const char* suffix : {"", ".part", ".copy"})
        unlink((path_ / (digest.sha256 + suffix)).c_str());
    unlink((path_ / "lock").c_str());
    rmdir(path_.c_str());
  }

 private:
  fs::path path_;
  std::optional<FileLock> lock_;
};

// Makes a hard link if the file system supports it, else copies.
void LinkOrCopy(const fs::path& blob, const FileDigest& digest, const fs::path& target) {
  if (link(blob.c_str(), target.c_str()) == 0) return;
  if (errno != EPERM && errno != ENOTSUP && errno != ENOSYS && errno != EMLINK)
    ThrowResource("link", target, errno);
  CopyChecked(blob, digest, target);
}

}  // namespace

ValidationDemands DemandsOf(const ZooEntry& entry, std::string_view what) {
  const Json& validation = entry.validation;
  if (!validation.contains("gate")) return {.ungated = true};
  return {.gate = JsonString(JsonMember(validation, "gate", what), "text", what)};
}

void CheckEntryIsOf(const ZooEntry& entry, const CheckedArtifact& artifact, std::string_view what) {
  if (entry.identity != artifact.identity) {
    throw InputError(fmt::format("{}: identity {}, but its manifest has {}", what, entry.identity,
                                 artifact.identity));
  }
  if (entry.files != artifact.files)
    throw InputError(fmt::format("{}: lists other files than its manifest", what));
  if (entry.model != artifact.manifest.at("model"))
    throw InputError(fmt::format("{}: 'model' differs from its manifest", what));
  if (!SaysTheSame(entry.validation, artifact.validation.summary))
    throw InputError(fmt::format("{}: 'validation' differs from its report", what));
  if (!artifact.validation.problems.empty()) {
    throw InputError(
        fmt::format("{}: not allowed in a zoo: {}", what, artifact.validation.problems[0].text));
  }
}

Pulled Pull(const ZooSource& source, const ZooReference& reference, const fs::path& output,
            const FetchOptions& options) {
  if (fs::exists(fs::symlink_status(output)))
    throw InputError(output.string() + ": exists already; choose another name");
  FetchedEntry fetched = FetchEntry(source, reference, options.transfer);
  if (options.judge) options.judge(fetched);
  Pulled pulled{std::move(fetched.entry), fetched.yanked, {}};
  const ZooEntry& entry = pulled.entry;
  PartialPull partial(output);
  FetchBlobs(source, entry, partial.path(), partial.path(), options, &pulled.counts);

  AtomicDirectory directory(output);
  for (const auto& [name, digest] : entry.files)
    LinkOrCopy(partial.path() / digest.sha256, digest, directory.staging() / name);
  const std::string what = source.address + "/" + EntryPath("", entry.name, entry.version).string();
  try {
    LookInSandbox([&] { CheckArtifact(directory.staging(), std::nullopt, DemandsOf(entry, what)); },
                  what);
    const CheckedArtifact artifact =
        CheckArtifact(directory.staging(), std::nullopt, DemandsOf(entry, what));
    CheckEntryIsOf(entry, artifact, what);
  } catch (const InputError&) {
    partial.Remove(entry);  // the bytes match the entry but are not a valid artifact, so
                            // resuming is useless
    throw;
  }
  directory.Commit();
  partial.Remove(entry);
  return pulled;
}

}  // namespace oscar
