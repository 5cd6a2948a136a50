// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens an entry of a zoo as an artifact without copying it. FilesOfEntry gives the paths of its
// blobs. LinkedEntry makes a temporary folder of links to them, for other programs. Trap: check the
// blobs' digests before parsing any of them.
#pragma once

#include <filesystem>

#include "capture/files/temporary_directory.h"
#include "export/artifact/artifact_reader.h"
#include "zoo/store/zoo.h"

namespace oscar {

// Errors about these files name the entry's file.
ArtifactFiles FilesOfEntry(const Zoo& zoo, const ZooEntry& entry);

class LinkedEntry {
 public:
  LinkedEntry(const std::filesystem::path& zoo, const ZooEntry& entry);  // throws ResourceError

  const std::filesystem::path& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace oscar
