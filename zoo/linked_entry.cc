// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See linked_entry.h.
#include "zoo/linked_entry.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "capture/files/posix_file.h"

namespace fs = std::filesystem;

namespace oscar {

LinkedEntry::LinkedEntry(const fs::path& zoo, const ZooEntry& entry) {
  std::string pattern = (fs::temp_directory_path() / "oscar-zoo-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) ThrowResource("create directory", pattern, errno);
  directory_ = pattern;
  for (const auto& [name, digest] : entry.files) {
    std::error_code error;
    fs::create_symlink(fs::absolute(BlobPath(zoo, digest.sha256)), directory_ / name, error);
    if (!error) continue;
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
    ThrowResource("link", directory_ / name, error.value());
  }
}

LinkedEntry::~LinkedEntry() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

}  // namespace oscar
