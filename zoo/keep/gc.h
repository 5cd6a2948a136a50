// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Removes what no version names: blobs, and unfinished files of publishers and mirrors that were
// cut off. No version is ever removed.
#pragma once

#include <functional>
#include <vector>

#include "zoo/store/zoo.h"

namespace oscar {

struct Collected {
  std::vector<FileDigest> blobs;  // removed, or that would be
  size_t unfinished = 0;          // files
  uint64_t bytes = 0;             // of both
};

// Waits until nobody publishes (`waiting`: see FileLock). Throws InputError if an entry cannot be
// read, because its blobs are then unknown; ResourceError, also where the file system has no locks
// and a publisher could be at work unseen.
Collected CollectGarbage(const Zoo& zoo, bool dry_run, const std::function<void()>& waiting);

}  // namespace oscar
