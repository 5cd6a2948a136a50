// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Removes files that no version needs: blobs that no entry names, and unfinished files of
// interrupted publishers and mirrors. It never removes a version.
#pragma once

#include <functional>
#include <vector>

#include "zoo/store/zoo.h"

namespace oscar {

struct Collected {
  std::vector<FileDigest> blobs;  // the removed blobs (in a dry run: those that would be removed)
  size_t unfinished = 0;          // number of unfinished files
  uint64_t bytes = 0;             // total size of the blobs and the unfinished files
};

// Waits until no publisher is active (`waiting`: see FileLock). Throws InputError if an entry
// cannot be read, because the blobs that it names are then unknown. Throws ResourceError if a file
// cannot be removed, or if the file system has no locks and an active publisher could go unnoticed.
Collected CollectGarbage(const Zoo& zoo, bool dry_run, const std::function<void()>& waiting);

}  // namespace oscar
