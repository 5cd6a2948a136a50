// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the entries of one name: a lock that serializes publishers, and a folder for unfinished
// files. The lock (flock) is advisory and missing on some shares. Without it an entry still has
// exactly one author, because its name is taken by a rename that never replaces. The pointer still
// ends at the highest version, because it is read again after it was written.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "zoo/store/zoo.h"
#include "zoo/store/zoo_lock.h"

namespace oscar {

class Publisher {
 public:
  // Waits for other publishers of this name (or one that differs only in case), and for gc;
  // `waiting`: see FileLock. Removes what interrupted publishers left in the folder. Throws
  // InputError if the zoo has the name in another case, ResourceError.
  Publisher(const Zoo& zoo, const ZooName& name, const std::function<void()>& waiting);
  const std::filesystem::path& staging() const { return staging_; }

  // Makes the entry durable under its name. Moves the pointer to it if it is the highest version.
  // Returns false and changes nothing if the entry already exists. Every blob must already be
  // durable.
  bool PublishEntry(const ZooEntry& entry);

  // Moves the pointer to the highest version that is not yanked. Needed after a yank, an
  // interrupted publisher, or one that had no lock. Returns the version that the pointer now names.
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
