// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens an entry as an artifact without copying it: its blobs in place, or, for other programs,
// a temporary folder of links to them. Trap: check the blobs' digests before anything is
// parsed.
#pragma once

#include <filesystem>

#include "capture/files/temporary_directory.h"
#include "export/artifact/artifact_reader.h"
#include "zoo/store/zoo.h"

namespace oscar {

// Messages name the entry's own file.
ArtifactFiles FilesOfEntry(const Zoo& zoo, const ZooEntry& entry);

class LinkedEntry {
 public:
  LinkedEntry(const std::filesystem::path& zoo, const ZooEntry& entry);  // throws ResourceError

  const std::filesystem::path& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace oscar
