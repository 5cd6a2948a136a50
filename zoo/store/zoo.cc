// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/zoo.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>

#include "capture/files/atomic_file.h"
#include "capture/files/posix_file.h"
#include "linalg/base/error.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/yank.h"
#include "zoo/store/zoo_index.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kFolders[] = {"blobs", "blobs/sha256", "entries", "staging"};

// Entries of a directory, sorted by name; empty if it does not exist.
std::vector<fs::directory_entry> List(const fs::path& directory) {
  std::vector<fs::directory_entry> out;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    out.push_back(*entry);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw InputError(fmt::format("{}: {}", directory.string(), error.message()));
  std::ranges::sort(out, {}, [](const fs::directory_entry& entry) -> const std::string& {
    return entry.path().native();
  });
  return out;
}

// The directory listing includes the file type, which saves a system call per entry.
bool IsFolder(const fs::directory_entry& entry) {
  return entry.is_directory() && !entry.is_symlink();
}

std::optional<ZooVersion> VersionOfFile(const fs::directory_entry& entry) {
  if (!entry.is_regular_file() || entry.is_symlink()) return std::nullopt;
  if (entry.path().extension() != ".json") return std::nullopt;
  return ParseZooVersion(entry.path().stem().string());
}

// Calls visit(name, folder entry) for every folder entries/<ORG>/<MODEL>, and stranger(entry) for
// everything else there.
template <typename Visit, typename Stranger>
void ForEachName(const fs::path& zoo, Visit visit, Stranger stranger) {
  for (const auto& org : List(zoo / "entries")) {
    const std::string org_name = org.path().filename().string();
    if (!IsFolder(org) || !NamePartProblem(org_name).empty()) {
      stranger(org);
      continue;
    }
    for (const auto& model : List(org.path())) {
      const std::string model_name = model.path().filename().string();
      if (IsFolder(model) && NamePartProblem(model_name).empty()) {
        visit(ZooName{org_name, model_name}, model);
      } else {
        stranger(model);
      }
    }
  }
}

std::string SchemaText() {
  return CanonicalJson({{"$schema", {{"name", kZooSchema}, {"version", kZooVersion}}}});
}

}  // namespace

void InitZoo(const fs::path& path) {
  if (!fs::exists(fs::symlink_status(path))) {
    AtomicDirectory directory(path);
    for (const char* folder : kFolders) fs::create_directory(directory.staging() / folder);
    WriteFileAtomically(directory.staging() / kIndexFile, CanonicalJson(IndexToJson({})));
    WriteFileAtomically(directory.staging() / kZooFile, SchemaText());
    directory.Commit();
    return;
  }
  if (!fs::is_directory(path))
    throw InputError(path.string() + ": exists and is not a directory; choose another name");
  if (fs::exists(path / kZooFile)) throw InputError(path.string() + ": is already a zoo");
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    const std::string name = entry.path().lexically_relative(path).string();
    if (std::find(std::begin(kFolders), std::end(kFolders), name) == std::end(kFolders) &&
        !name.starts_with(kIndexFile)) {  // a leftover of an interrupted call
      throw InputError(
          fmt::format("{}: is not empty, but contains {}; a zoo needs a new or an empty directory",
                      path.string(), name));
    }
  }
  for (const char* folder : kFolders) {
    std::error_code error;
    fs::create_directory(path / folder, error);
    if (error) ThrowResource("create directory", path / folder, error.value());
    SyncPath(path / folder);
  }
  WriteFileAtomically(path / kIndexFile, CanonicalJson(IndexToJson({})));
  WriteFileAtomically(path / kZooFile, SchemaText());
}

bool Zoo::LooksLikeOne(const fs::path& path) {
  return fs::is_directory(path) && fs::exists(path / kZooFile);
}

Zoo Zoo::Open(const fs::path& path) {
  if (!LooksLikeOne(path)) {
    throw InputError(
        fmt::format("{}: not a zoo, because it does not contain {}; run oscar-zoo init to make one",
                    path.string(), kZooFile));
  }
  const std::string file = (path / kZooFile).string();
  const Json json =
      ParseStrictJson(ReadSmallFile(file, kZooJsonLimits.max_bytes), file, kZooJsonLimits);
  const Json& schema = JsonMember(json, "$schema", file);
  const std::string name = JsonString(schema, "name", file);
  const int64_t version = JsonInt(schema, "version", file);
  if (name != kZooSchema || version != kZooVersion) {
    throw InputError(fmt::format(
        "{}: schema {} {}, expected {} {}; a newer version of oscar may be able to read it", file,
        name, version, kZooSchema, kZooVersion));
  }
  Zoo zoo;
  zoo.path_ = path;
  return zoo;
}

std::vector<ZooFolder> Zoo::Folders() const {
  std::vector<ZooFolder> folders;
  ForEachName(
      path_,
      [&](const ZooName& name, const fs::directory_entry& folder) {
        struct stat status {};
        const bool there = lstat(folder.path().c_str(), &status) == 0;
        folders.push_back({name, there ? Nanoseconds(status.st_mtim) : INT64_MAX});
      },
      [](const fs::directory_entry&) {});
  return folders;
}

std::vector<std::pair<ZooName, std::vector<ZooVersion>>> Zoo::Contents() const {
  std::vector<std::pair<ZooName, std::vector<ZooVersion>>> contents;
  ForEachName(
      path_,
      [&](const ZooName& name, const fs::directory_entry&) {
        std::vector<ZooVersion> versions = Versions(name);
        if (!versions.empty()) contents.emplace_back(name, std::move(versions));
      },
      [](const fs::directory_entry&) {});
  return contents;
}

std::vector<ZooName> Zoo::Names() const {
  std::vector<ZooName> names;
  for (const auto& [name, versions] : Contents()) names.push_back(name);
  return names;
}

std::vector<ZooVersion> Zoo::Versions(const ZooName& name) const {
  std::vector<ZooVersion> versions;
  for (const auto& entry : List(EntryFolder(path_, name))) {
    if (const auto version = VersionOfFile(entry)) versions.push_back(*version);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

ZooEntry Zoo::Read(const ZooName& name, const ZooVersion& version) const {
  const fs::path file = EntryPath(path_, name, version);
  if (!fs::exists(fs::symlink_status(file))) {
    std::string there;
    for (const ZooVersion& known : Versions(name))
      there += (there.empty() ? "" : ", ") + known.text();
    throw InputError(fmt::format(
        "{}: does not contain {}@{}; {}", path_.string(), name.text(), version.text(),
        there.empty() ? "oscar-zoo ls lists its contents" : "its versions are " + there));
  }
  ZooEntry entry = ParseEntry(ReadSmallFile(file, kZooJsonLimits.max_bytes), file.string());
  if (entry.name != name || entry.version != version) {
    throw InputError(fmt::format("{}: the file describes {}@{}, expected {}@{}", file.string(),
                                 entry.name.text(), entry.version.text(), name.text(),
                                 version.text()));
  }
  return entry;
}

std::optional<LatestPointer> Zoo::Latest(const ZooName& name) const {
  const fs::path file = EntryFolder(path_, name) / kLatestFile;
  if (!fs::exists(fs::symlink_status(file))) return std::nullopt;
  return ParseLatest(ReadSmallFile(file, kZooJsonLimits.max_bytes), name, file.string());
}

std::optional<ZooVersion> Zoo::Highest(const ZooName& name) const {
  const std::vector<ZooVersion> versions = Versions(name);
  for (auto version = versions.rbegin(); version != versions.rend(); ++version)
    if (YankReason(*this, name, *version).empty()) return *version;
  return versions.empty() ? std::nullopt : std::optional(versions.back());
}

ZooVersion Zoo::Resolve(const ZooReference& reference) const {
  if (reference.version) return *reference.version;
  if (reference.identity) {
    for (const ZooVersion& version : Versions(reference.name))
      if (Read(reference.name, version).identity == *reference.identity) return version;
  } else if (const auto latest = Latest(reference.name)) {
    return latest->version;
  } else if (const auto highest = Highest(reference.name)) {
    return *highest;
  }
  throw InputError(fmt::format("{}: does not contain {}; oscar-zoo ls lists its contents",
                               path_.string(), reference.text()));
}

std::vector<std::string> Zoo::Strangers() const {
  std::vector<std::string> strangers;
  const auto add = [&](const fs::directory_entry& entry) {
    strangers.push_back(entry.path().lexically_relative(path_).string());
  };
  ForEachName(
      path_,
      [&](const ZooName&, const fs::directory_entry& folder) {
        for (const auto& entry : List(folder.path())) {
          if (!VersionOfFile(entry) && entry.path().filename() != kLatestFile) add(entry);
        }
      },
      add);
  std::sort(strangers.begin(), strangers.end());
  return strangers;
}

}  // namespace oscar
