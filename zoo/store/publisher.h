// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the entries of one name. A Publisher holds a lock that excludes other publishers of the
// name, and has a folder for unfinished files.
//
// Some network file systems lack locks (flock). Publishing is safe there too. Only one publisher
// can create an entry, because it is renamed to its final name without replacing a file. The
// pointer to the latest version is correct in the end, because AdvanceLatest reads it again after
// writing it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "zoo/store/zoo.h"
#include "zoo/store/zoo_lock.h"

namespace oscar {

class Publisher {
 public:
  // Waits for other publishers of this name, in upper or lower case, and for garbage collection
  // (`waiting`: see FileLock). Removes what interrupted publishers left in the folder. Throws
  // InputError if the zoo has the name in another case, and ResourceError.
  Publisher(const Zoo& zoo, const ZooName& name, const std::function<void()>& waiting);
  const std::filesystem::path& staging() const { return staging_; }

  // Writes the entry under its final name. Moves the pointer to it if its version is the highest.
  // Returns false and changes nothing if the entry already exists. Every blob must already have
  // been flushed to disk; this flushes their folder.
  bool PublishEntry(const ZooEntry& entry);

  // Moves the pointer to the highest version that is not yanked, and returns that version. This is
  // needed after a yank, and if a publisher was interrupted or had no lock.
  LatestPointer AdvanceLatest();

 private:
  std::filesystem::path Stage(const char* name, const Json& json) const;
  void MovePointer(const std::filesystem::path& staged) const;

  Zoo zoo_;
  ZooName name_;
  std::filesystem::path staging_;
  std::optional<FileLock> blobs_stay_, name_lock_;
};

}  // namespace oscar
