// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/yank.h"

#include <fmt/format.h>

#include "capture/files/atomic_file.h"
#include "linalg/base/error.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/publisher.h"
#include "zoo/store/zoo_index.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr std::string_view kYankSchema = "oscar-zoo-yank";
constexpr const char* kNoReason = "(the file with the reason cannot be read)";

}  // namespace

Json YankToJson(const ZooName& name, const ZooVersion& version, const std::string& reason) {
  return {{"$schema", {{"name", kYankSchema}, {"version", kZooVersion}}},
          {"name", name.text()},
          {"version", version.text()},
          {"reason", reason}};
}

std::string ParseYank(std::string_view text, const ZooName& name, const ZooVersion& version,
                      std::string_view what) {
  const Json json = ParseStrictJson(text, what, kZooJsonLimits);
  const std::string reason = JsonString(json, "reason", what);
  if (json != YankToJson(name, version, reason) || reason.empty() ||
      reason.size() > kMaxYankReason) {
    throw InputError(
        fmt::format("{}: does not yank {}@{} with a reason", what, name.text(), version.text()));
  }
  return reason;
}

std::string YankReason(const Zoo& zoo, const ZooName& name, const ZooVersion& version) {
  const fs::path file = YankPath(zoo.path(), name, version);
  if (!fs::exists(fs::symlink_status(file))) return "";
  try {
    return ParseYank(ReadSmallFile(file, kZooJsonLimits.max_bytes), name, version, file.string());
  } catch (const InputError&) {
    return kNoReason;
  }
}

std::map<std::string, std::string> YankReasons(const Zoo& zoo) {
  std::map<std::string, std::string> reasons;
  std::error_code error;
  const fs::path root = zoo.path() / "yanked";
  for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path below = entry->path().lexically_relative(root);
    const auto version = ParseZooVersion(below.stem().string());
    const std::string name = below.parent_path().generic_string();
    if (!version || below.extension() != ".json" || !ZooNameProblem(name).empty()) continue;
    const ZooName parsed = ParseZooName(name, "yanked");
    reasons[parsed.text() + "@" + version->text()] = YankReason(zoo, parsed, *version);
  }
  return reasons;
}

void Yank(const Zoo& zoo, const ZooName& name, const ZooVersion& version, const std::string& reason,
          const std::function<void()>& waiting) {
  if (reason.empty() || reason.size() > kMaxYankReason)
    throw UsageError(fmt::format("give a reason of 1 to {} bytes", kMaxYankReason));
  (void)zoo.Read(name, version);
  Publisher publisher(zoo, name, waiting);
  if (const std::string before = YankReason(zoo, name, version); !before.empty()) {
    throw InputError(
        fmt::format("{}@{} is already yanked: {}", name.text(), version.text(), before));
  }
  const fs::path file = YankPath(zoo.path(), name, version);
  MakeFolders(zoo.path(), file.parent_path());
  WriteFileAtomically(file, CanonicalJson(YankToJson(name, version, reason)));
  publisher.AdvanceLatest();
  UpdateIndex(zoo);
}

}  // namespace oscar
