// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies a zoo to a local one, with the checks of a pull: new versions, yanks, signatures, the
// snapshot. Existing files are not fetched again, and nothing is removed.
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

// Creates `zoo` if it does not exist. With `name` only that name is copied. A version with wrong
// bytes is listed as a problem. A broken transfer is a ResourceError, and the same call resumes it.
Mirrored Mirror(const ZooSource& source, const std::filesystem::path& zoo,
                const std::optional<ZooName>& name, const FetchOptions& options,
                const std::function<void()>& waiting);

}  // namespace oscar
