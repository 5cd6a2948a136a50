// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Read access to a zoo. Trap: others may publish at the same time. Each call sees complete files,
// but two calls may see different states.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zoo/store/zoo_format.h"

namespace oscar {

// Creates an empty zoo. `path` must be new, an empty directory, or a directory where an earlier
// call was interrupted. Throws InputError, ResourceError.
void InitZoo(const std::filesystem::path& path);

inline int64_t Nanoseconds(const timespec& time) {
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

// The folder with the entries of a name, and the time of its last change.
struct ZooFolder {
  ZooName name;
  int64_t changed_ns = 0;  // nanoseconds since 1970, from the file system's clock
};

class Zoo {
 public:
  static bool LooksLikeOne(const std::filesystem::path& path);  // whether it has a zoo.json
  // Throws InputError if it is not a zoo, or has another format version.
  static Zoo Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }

  std::vector<ZooFolder> Folders() const;  // sorted by name; some may hold no version
  // Every name that has a version, sorted, with its ascending versions.
  std::vector<std::pair<ZooName, std::vector<ZooVersion>>> Contents() const;
  std::vector<ZooName> Names() const;
  std::vector<ZooVersion> Versions(const ZooName& name) const;  // ascending; empty if unknown
  // Reads an entry. Throws InputError naming the file; if there is no such entry, the message lists
  // the existing ones.
  ZooEntry Read(const ZooName& name, const ZooVersion& version) const;
  // The pointer, or nothing if there is none. Throws InputError if it cannot be read.
  std::optional<LatestPointer> Latest(const ZooName& name) const;
  // The highest version that is not yanked; the highest if all are yanked; nothing if there is
  // none.
  std::optional<ZooVersion> Highest(const ZooName& name) const;
  // Returns the version that a reference names, by number or by identity. For any other reference
  // returns the pointer's version, or the highest if an interrupted publisher left no pointer.
  // Throws InputError if there is none.
  ZooVersion Resolve(const ZooReference& reference) const;

  // Returns the files under entries/ that are not entries, as sorted paths relative to the zoo.
  std::vector<std::string> Strangers() const;

 private:
  std::filesystem::path path_;
};

}  // namespace oscar
