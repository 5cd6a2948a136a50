// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads ZIP archives as torch.save writes them, and refuses all others: stored entries under one
// prefix, consistent headers and directory, correct CRCs, and no unexplained bytes. Trap: published
// files have zero sizes and CRCs in their local headers, because a data descriptor follows the
// data. The central directory has the real values, and the descriptor must agree with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/mapped_file.h"

namespace oscar {

struct ZipRecord {
  std::string name;     // without the prefix: "data.pkl", "data/0"
  uint64_t offset = 0;  // where the data begins, bytes from the start of the file
  uint64_t size = 0;    // bytes
  uint32_t crc = 0;     // CRC-32
};

class ZipReader {
 public:
  // Reads the file once and checks every CRC. Throws InputError that names the file, the record if
  // there is one, and what was expected and found. Refuses programs (TorchScript), compression,
  // encryption, comments, archives of several volumes, overlapping records, gaps, repeated or
  // unsafe names, and sizes beyond the file.
  static ZipReader Open(const std::filesystem::path& path) { return Open(MappedFile::Open(path)); }
  static ZipReader Open(MappedFile file);

  const std::filesystem::path& path() const { return file_.path(); }
  uint64_t file_size() const { return file_.bytes().size(); }         // bytes
  const std::string& prefix() const { return prefix_; }               // without the slash
  const std::vector<ZipRecord>& records() const { return records_; }  // in directory order
  std::optional<std::span<const std::byte>> Find(std::string_view name) const;
  std::span<const std::byte> record(std::string_view name) const;  // throws InputError if absent

 private:
  MappedFile file_;
  std::string prefix_;
  std::vector<ZipRecord> records_;
  std::map<std::string, size_t, std::less<>> index_;  // name to index in records_
};

}  // namespace oscar
