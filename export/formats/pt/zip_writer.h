// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the same bytes as torch.save: stored entries, data at multiples of 64 bytes, sizes in data
// descriptors, and always a zip64 end record. Local headers have zero sizes and CRCs like torch's,
// because tests compare our bytes with published files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "capture/files/atomic_file.h"

namespace oscar {

class ZipWriter {
 public:
  // Names records "<prefix>/<name>". Throws ResourceError if the file cannot be created.
  ZipWriter(const std::filesystem::path& path, std::string prefix);
  // Throws InputError if the archive would exceed 4 GiB.
  void Add(std::string_view name, std::span<const std::byte> data);
  void Add(std::string_view name, std::string_view data) {
    Add(name, std::as_bytes(std::span(data)));
  }
  void Commit();

 private:
  AtomicFile file_;
  std::filesystem::path path_;
  std::string prefix_;
  std::string directory_;  // the central directory so far
  uint64_t count_ = 0;     // number of entries
};

}  // namespace oscar
