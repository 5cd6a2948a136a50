// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The one who writes entries of one name: a lock that serializes publishers, and a folder for
// unfinished files. The lock (flock) is a courtesy, missing on some shares. Without it an
// entry is still made by exactly one, because its name is taken by a rename that never replaces,
// and the pointer still ends at the highest version, because it is read again after it was written.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "zoo/store/zoo.h"
#include "zoo/store/zoo_lock.h"

namespace oscar {

class Publisher {
 public:
  // Waits for whoever publishes under this name (or one that differs in case only), and for gc;
  // `waiting`: see FileLock. Removes what cut off publishers left in the folder. Throws InputError
  // if the zoo has the name in another case, ResourceError.
  Publisher(const Zoo& zoo, const ZooName& name, const std::function<void()>& waiting);
  const std::filesystem::path& staging() const { return staging_; }

  // Makes the entry durable under its name and moves the pointer to it if it is the highest. False
  // if somebody else has made it; nothing is changed then. Every blob must be durable before.
  bool PublishEntry(const ZooEntry& entry);

  // Moves the pointer to the highest version that stands (a publisher was cut off, the lock did not
  // hold, or a version was yanked). Returns where it is.
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
