// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "capture/files/mapped_file.h"
#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIdBytes = 96;        // same limit as huggingface_hub
constexpr size_t kMaxRefFileBytes = 256;  // a commit and white space

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Whether `part` can be the ORG or the NAME of a Hub id.
bool IsIdPart(std::string_view part) {
  return !part.empty() && IsWordCharacter(part.front()) && IsWordCharacter(part.back()) &&
         std::ranges::all_of(part,
                             [](char c) { return IsWordCharacter(c) || c == '-' || c == '.'; }) &&
         part.find("--") == part.npos && part.find("..") == part.npos;
}

// Whether the text is a commit: 40 lower-case hexadecimal digits.
bool IsCommit(std::string_view text) {
  return text.size() == 40 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// A revision becomes a path below refs/, so no component may lead outside.
bool IsRevision(std::string_view revision) {
  if (revision.empty() || revision.size() > 255) return false;
  if (revision.find_first_of(std::string_view("\\\0", 2)) != revision.npos) return false;
  size_t begin = 0;
  while (true) {
    const size_t slash = revision.find('/', begin);
    const std::string_view part = revision.substr(begin, slash - begin);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == revision.npos) return true;
    begin = slash + 1;
  }
}

// Whether this can name a snapshot directory: a commit, or a name that a mirror or script chose.
bool IsSnapshotName(std::string_view text) {
  return IsRevision(text) && text.find('/') == text.npos &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7F'; });
}

std::optional<std::string> NonEmpty(const Environment& environment, const std::string& name) {
  std::optional<std::string> value = environment(name);
  if (value && value->empty()) value.reset();
  return value;
}

// Expands $NAME and ${NAME}. A variable that is not set stays unchanged, as in os.path.expandvars.
std::string ExpandVariables(std::string_view text, const Environment& environment) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    if (text[i] != '$') {
      out += text[i++];
      continue;
    }
    const bool braced = i + 1 < text.size() && text[i + 1] == '{';
    const size_t begin = i + (braced ? 2 : 1);
    size_t end = begin;
    while (end < text.size() && (braced ? text[end] != '}' : IsWordCharacter(text[end]))) ++end;
    const size_t after = braced && end < text.size() ? end + 1 : end;
    const bool complete = end > begin && (!braced || end < text.size());
    const auto value = complete ? environment(std::string(text.substr(begin, end - begin)))
                                : std::optional<std::string>();
    out += value ? *value : std::string(text.substr(i, after - i));
    i = after;
  }
  return out;
}

fs::path Expand(const std::string& text, const Environment& environment) {
  std::string expanded = text;
  const auto home = NonEmpty(environment, "HOME");
  if (home && (text == "~" || text.starts_with("~/"))) expanded = *home + text.substr(1);
  return ExpandVariables(expanded, environment);
}

// Returns the folder of the Hub's client; "" if no variable defines it.
fs::path HubHome(const Environment& environment) {
  if (const auto home = NonEmpty(environment, "HF_HOME")) return Expand(*home, environment);
  if (const auto xdg = NonEmpty(environment, "XDG_CACHE_HOME"))
    return Expand(*xdg, environment) / "huggingface";
  if (const auto home = NonEmpty(environment, "HOME"))
    return fs::path(*home) / ".cache" / "huggingface";
  return {};
}

// Lists a few matching file names of a directory, for "found" in errors.
std::string Listing(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(directory, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  const bool cut = names.size() > 8;
  if (cut) names.resize(8);
  return names.empty() ? "none" : fmt::format("{}{}", fmt::join(names, ", "), cut ? ", ..." : "");
}

// Returns the commit that refs/<revision> names.
std::string ReadRef(const fs::path& repository, const HubId& id) {
  const fs::path ref = repository / "refs" / id.revision;
  std::error_code ignored;
  if (!fs::is_regular_file(ref, ignored)) {
    throw InputError(
        fmt::format("revision {} of {} is not in the local cache, because there is no {}; cached "
                    "refs: {}; cached commits (name one in full after @ to use it): {}; or run: {}",
                    Quoted(id.revision), id.repository, ref.string(), Listing(repository / "refs"),
                    Listing(repository / "snapshots"), DownloadCommand(id)));
  }
  const MappedFile file = MappedFile::Open(ref);
  const auto bytes = file.bytes();
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(first);
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  if (bytes.size() > kMaxRefFileBytes || !IsSnapshotName(text)) {
    throw InputError(
        fmt::format("{}: expected a commit, the name of a directory in snapshots/, "
                    "found {}",
                    ref.string(), Quoted(text, 60)));
  }
  return std::string(text);
}

}  // namespace

std::optional<HubId> ParseHubId(std::string_view text) {
  if (text.starts_with("hf://")) text.remove_prefix(5);
  HubId id;
  id.revision = "main";
  if (const size_t at = text.find('@'); at != text.npos) {
    id.revision = text.substr(at + 1);
    id.revision_given = true;
    text = text.substr(0, at);
    if (!IsRevision(id.revision)) return std::nullopt;
  }
  const size_t slash = text.find('/');
  const bool valid = text.size() <= kMaxIdBytes && IsIdPart(text.substr(0, slash)) &&
                     (slash == text.npos || IsIdPart(text.substr(slash + 1)));
  if (!valid) return std::nullopt;
  id.repository = text;
  return id;
}

std::string DownloadCommand(const HubId& id) {
  std::string command = "hf download " + id.repository;
  if (id.revision_given) command += " --revision " + id.revision;
  return command;
}

fs::path HubCacheRoot(const Environment& environment) {
  if (const auto cache = NonEmpty(environment, "HF_HUB_CACHE")) return Expand(*cache, environment);
  if (const auto cache = NonEmpty(environment, "HUGGINGFACE_HUB_CACHE")) {
    return Expand(*cache, environment);
  }
  if (const fs::path home = HubHome(environment); !home.empty()) return home / "hub";
  throw InputError(
      "the Hugging Face cache cannot be found: none of HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and "
      "HOME is set; set one, or give a model directory");
}

fs::path HubTokenFile(const Environment& environment) {
  if (const auto file = NonEmpty(environment, "HF_TOKEN_PATH")) return Expand(*file, environment);
  const fs::path home = HubHome(environment);
  return home.empty() ? home : home / "token";
}

fs::path FindSnapshot(const fs::path& root, const HubId& id) {
  std::string folder = "models--" + id.repository;
  if (const size_t slash = folder.find('/'); slash != folder.npos) folder.replace(slash, 1, "--");
  const fs::path repository = root / folder;
  std::error_code ignored;
  if (!fs::is_directory(repository, ignored)) {
    throw InputError(
        fmt::format("{} is neither a directory nor in the local Hugging Face cache at {}; run: {}",
                    id.repository, root.string(), DownloadCommand(id)));
  }
  const bool is_snapshot = IsSnapshotName(id.revision) &&
                           !fs::exists(repository / "refs" / id.revision, ignored) &&
                           fs::is_directory(repository / "snapshots" / id.revision, ignored);
  const std::string commit =
      is_snapshot || IsCommit(id.revision) ? id.revision : ReadRef(repository, id);
  const fs::path snapshot = repository / "snapshots" / commit;
  if (!fs::is_directory(snapshot, ignored)) {
    throw InputError(
        fmt::format("commit {} of {} is not in the local cache, because there is no {}; cached "
                    "commits: {}; run: {}",
                    commit, id.repository, snapshot.string(), Listing(repository / "snapshots"),
                    DownloadCommand(id)));
  }
  return snapshot;
}

std::optional<std::pair<std::string, std::string>> SnapshotIdentity(const fs::path& directory) {
  const std::string commit = directory.filename().string();
  const fs::path snapshots = directory.parent_path();
  std::string folder = snapshots.parent_path().filename().string();
  constexpr std::string_view kPrefix = "models--";
  if (!IsSnapshotName(commit) || snapshots.filename() != "snapshots" ||
      !folder.starts_with(kPrefix)) {
    return std::nullopt;
  }
  folder.erase(0, kPrefix.size());
  if (const size_t dashes = folder.find("--"); dashes != folder.npos)
    folder.replace(dashes, 2, "/");
  return std::pair(folder, commit);
}

}  // namespace oscar
