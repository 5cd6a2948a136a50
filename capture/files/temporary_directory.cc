// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/temporary_directory.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "capture/files/posix_file.h"

namespace oscar {

TemporaryDirectory::TemporaryDirectory(std::string_view purpose) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) ThrowResource("find the folder of temporary files", "TMPDIR", error.value());
  std::string pattern = (folder / fmt::format("oscar-{}-XXXXXX", purpose)).string();
  if (mkdtemp(pattern.data()) == nullptr) ThrowResource("create directory", pattern, errno);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace oscar
