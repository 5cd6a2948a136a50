// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A folder in the system's temporary folder, which the destructor removes with its content.
#pragma once

#include <filesystem>
#include <string_view>

namespace oscar {

class TemporaryDirectory {
 public:
  // The name is "oscar-<purpose>-" and a few letters. Throws ResourceError.
  explicit TemporaryDirectory(std::string_view purpose);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace oscar
