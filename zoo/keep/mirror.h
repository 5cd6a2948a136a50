// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies the new versions, yanks, signatures and the snapshot of a zoo into a local zoo, with the
// checks of a pull. It does not fetch existing files again, and removes nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "zoo/source/fetch.h"

namespace oscar {

struct Mirrored {
  std::vector<std::string> added;     // as NAME@VERSION
  std::vector<std::string> yanked;    // newly yanked
  std::vector<std::string> problems;  // versions that were not copied, and why
  size_t versions = 0;                // number of versions in the source
  size_t signatures = 0;              // number of new signatures
  FetchCounts counts;
};

// Creates `zoo` if it does not exist. If `name` is given, copies only the versions of that name.
// Lists a version with wrong bytes as a problem and continues. Throws ResourceError if a transfer
// fails; repeating the call resumes it.
Mirrored Mirror(const ZooSource& source, const std::filesystem::path& zoo,
                const std::optional<ZooName>& name, const FetchOptions& options,
                const std::function<void()>& waiting);

}  // namespace oscar
