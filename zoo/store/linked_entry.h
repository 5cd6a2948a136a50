// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An entry as a directory without copying it: a temporary folder of links to its blobs, for checks
// that read an artifact. Trap: the blobs' digests must have been checked before anything is parsed.
#pragma once

#include <filesystem>

#include "capture/files/temporary_directory.h"
#include "zoo/store/zoo_format.h"

namespace oscar {

class LinkedEntry {
 public:
  LinkedEntry(const std::filesystem::path& zoo, const ZooEntry& entry);  // throws ResourceError

  const std::filesystem::path& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace oscar
