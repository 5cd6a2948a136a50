// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/linked_entry.h"

#include <system_error>

#include "capture/files/posix_file.h"

namespace fs = std::filesystem;

namespace oscar {

ArtifactFiles FilesOfEntry(const Zoo& zoo, const ZooEntry& entry) {
  ArtifactFiles files{EntryPath(zoo.path(), entry.name, entry.version)};
  for (const auto& [name, digest] : entry.files)
    files.elsewhere[name] = BlobPath(zoo.path(), digest.sha256);
  return files;
}

LinkedEntry::LinkedEntry(const fs::path& zoo, const ZooEntry& entry) : directory_("zoo") {
  for (const auto& [name, digest] : entry.files) {
    std::error_code error;
    fs::create_symlink(fs::absolute(BlobPath(zoo, digest.sha256)), directory() / name, error);
    if (error) ThrowResource("link", directory() / name, error.value());
  }
}

}  // namespace oscar
