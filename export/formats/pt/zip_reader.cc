// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the end record and the central directory, then walks the local headers in file order. Each
// header must begin where the previous record ended, so nothing can hide between records. Offsets
// from the file are compared with its size in 64-bit arithmetic before they are used.
#include "export/formats/pt/zip_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "capture/files/digest.h"  // kComparesDigests
#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "export/formats/pt/zip_format.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using Bytes = std::span<const std::byte>;

// An entry of the central directory.
struct Entry {
  std::string name;
  uint16_t flags = 0, method = 0, time = 0, date = 0;
  uint32_t crc = 0;
  uint64_t size = 0, header_offset = 0;
};

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

class Parser {
 public:
  Parser(const std::filesystem::path& path, Bytes bytes) : path_(path), bytes_(bytes) {}

  [[noreturn]] void Fail(std::string_view why) const {
    throw InputError(
        fmt::format("{}: not an archive written by torch.save: {}. Expected stored ZIP entries "
                    "with matching headers; save the file again with torch.save(object, path)",
                    path_.string(), why));
  }

  std::vector<Entry> ReadDirectory() {
    directory_ = ReadEnd();
    std::vector<Entry> entries;
    uint64_t at = directory_.offset;
    const uint64_t end = directory_.offset + directory_.size;
    for (uint64_t i = 0; i < directory_.count; ++i) {
      if (end - at < zip::kCentralBytes) Fail("the directory is shorter than its entry count says");
      at = ReadCentral(at, end, &entries);
    }
    if (at != end) {
      Fail(fmt::format("the directory holds more than the {} entries it counts", directory_.count));
    }
    return entries;
  }

  // Walks the local headers, data and descriptors. Returns the offset of each entry's data.
  std::vector<uint64_t> CheckLayout(const std::vector<Entry>& entries) const {
    std::vector<size_t> order(entries.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return entries[a].header_offset < entries[b].header_offset;
    });
    std::vector<uint64_t> data(entries.size());
    uint64_t at = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Entry& entry = entries[order[i]];
      if (entry.header_offset != at) {
        Fail(fmt::format("record '{}' begins at byte {}, but the one before it ends at {}",
                         Escaped(entry.name), entry.header_offset, at));
      }
      const uint64_t next =
          i + 1 < order.size() ? entries[order[i + 1]].header_offset : directory_.offset;
      data[order[i]] = CheckLocal(entry, next);
      at = next;
    }
    if (at != directory_.offset) Fail("bytes between the last record and the directory");
    return data;
  }

 private:
  Directory ReadEnd() const {
    if (bytes_.size() < zip::kEndBytes || Get<uint32_t>(0) != zip::kLocalSignature) {
      Fail("it does not begin with a ZIP record");
    }
    const uint64_t end = bytes_.size() - zip::kEndBytes;
    if (Get<uint32_t>(end) != zip::kEndSignature || Get<uint16_t>(end + 20) != 0) {
      Fail("the end record is missing or carries a comment");
    }
    const uint16_t disk = Get<uint16_t>(end + 4), first_disk = Get<uint16_t>(end + 6);
    const uint16_t disk_count = Get<uint16_t>(end + 8), count = Get<uint16_t>(end + 10);
    const uint32_t size = Get<uint32_t>(end + 12), offset = Get<uint32_t>(end + 16);
    if (disk != 0 || first_disk != 0 || disk_count != count) Fail("more than one volume");
    Directory directory{offset, size, count};
    uint64_t directory_end = end;
    const bool has64 = end >= zip::kEnd64LocatorBytes &&
                       Get<uint32_t>(end - zip::kEnd64LocatorBytes) == zip::kEnd64LocatorSignature;
    if (has64) {
      directory_end = ReadEnd64(end - zip::kEnd64LocatorBytes, &directory);
      if ((count != zip::kMax16 && count != directory.count) ||
          (size != zip::kMax32 && size != directory.size) ||
          (offset != zip::kMax32 && offset != directory.offset)) {
        Fail("the two end records disagree");
      }
    }
    if (directory.offset > directory_end || directory.size != directory_end - directory.offset) {
      Fail("the directory's offset and size do not lead to the end record");
    }
    if (directory.count == 0 || directory.count > directory.size / zip::kCentralBytes) {
      Fail(fmt::format("{} entries in a directory of {} bytes", directory.count, directory.size));
    }
    return directory;
  }

  // Returns the offset of the zip64 end record, where the directory must end.
  uint64_t ReadEnd64(uint64_t locator, Directory* directory) const {
    if (locator < zip::kEnd64Bytes) Fail("no room for a zip64 end record");
    const uint64_t at = locator - zip::kEnd64Bytes;
    if (Get<uint32_t>(locator + 4) != 0 || Get<uint32_t>(locator + 16) > 1 ||
        Get<uint64_t>(locator + 8) != at || Get<uint32_t>(at) != zip::kEnd64Signature ||
        Get<uint64_t>(at + 4) != zip::kEnd64Bytes - 12) {
      Fail("the zip64 locator does not name the record before it");
    }
    if (Get<uint32_t>(at + 16) != 0 || Get<uint32_t>(at + 20) != 0 ||
        Get<uint64_t>(at + 24) != Get<uint64_t>(at + 32)) {
      Fail("more than one volume");
    }
    *directory = {Get<uint64_t>(at + 48), Get<uint64_t>(at + 40), Get<uint64_t>(at + 32)};
    return at;
  }

  uint64_t ReadCentral(uint64_t at, uint64_t end, std::vector<Entry>* entries) const {
    if (Get<uint32_t>(at) != zip::kCentralSignature)
      Fail("a directory entry has a wrong signature");
    const uint64_t name_size = Get<uint16_t>(at + 28), extra_size = Get<uint16_t>(at + 30);
    const uint64_t next = at + zip::kCentralBytes + name_size + extra_size;
    if (next > end) Fail("a directory entry extends beyond the directory's end");
    if (Get<uint16_t>(at + 32) != 0 || Get<uint16_t>(at + 34) != 0) {
      Fail("a directory entry has a comment or lies on another volume");
    }
    Entry entry;
    entry.flags = Get<uint16_t>(at + 8);
    entry.method = Get<uint16_t>(at + 10);
    entry.time = Get<uint16_t>(at + 12);
    entry.date = Get<uint16_t>(at + 14);
    entry.crc = Get<uint32_t>(at + 16);
    uint64_t stored = Get<uint32_t>(at + 20);
    entry.size = Get<uint32_t>(at + 24);
    entry.header_offset = Get<uint32_t>(at + 42);
    entry.name = Text(at + zip::kCentralBytes, name_size);
    ReadExtra(at + zip::kCentralBytes + name_size, extra_size, entry.name,
              {&entry.size, &stored, &entry.header_offset});
    CheckEntry(entry, stored);
    entries->push_back(std::move(entry));
    return next;
  }

  // torch.load(weights_only=True) recognizes TorchScript by constants.pkl (torch/serialization.py,
  // _is_torchscript_zip). The program itself is in code/, so code/ is refused even without
  // constants.pkl.
  void CheckIsNoProgram(std::string_view name) const {
    const std::string_view record = name.substr(name.find('/') + 1);
    if (record != "constants.pkl" && !record.starts_with("code/")) return;
    throw InputError(
        fmt::format("{}: a TorchScript archive (record '{}'), which holds a program that "
                    "torch.load(weights_only=True) refuses. Expected only data; if you trust the "
                    "file, open it with torch.jit.load and save its tensors with torch.save",
                    path_.string(), Escaped(name)));
  }

  void CheckEntry(const Entry& entry, uint64_t stored) const {
    CheckIsNoProgram(entry.name);
    const std::string name = Escaped(entry.name);
    if (entry.method != zip::kMethodStored) {
      Fail(fmt::format("record '{}' is compressed (method {})", name, entry.method));
    }
    if ((entry.flags & ~(zip::kFlagDescriptor | zip::kFlagUtf8)) != 0) {
      Fail(fmt::format("record '{}' has flags {:#x} (encryption, patch data)", name, entry.flags));
    }
    if (stored != entry.size) {
      Fail(fmt::format("record '{}' is stored uncompressed, but its sizes {} and {} differ", name,
                       stored, entry.size));
    }
    if (entry.header_offset >= directory_.offset || entry.size > directory_.offset) {
      Fail(fmt::format("record '{}' ({} bytes at {}) extends beyond the file", name, entry.size,
                       entry.header_offset));
    }
    bool bad = entry.name.empty() || FirstInvalidUtf8(entry.name);
    for (size_t begin = 0; begin <= entry.name.size() && !bad;) {
      const size_t slash = std::min(entry.name.find('/', begin), entry.name.size());
      const std::string_view part = std::string_view(entry.name).substr(begin, slash - begin);
      bad = part.empty() || part == "." || part == "..";
      begin = slash + 1;
    }
    for (const char c : entry.name) {
      bad = bad || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    }
    if (bad) Fail(fmt::format("unsafe record name '{}'", name));
  }

  // Returns the offset of the entry's data. `next` is the offset of the next record, or of the
  // directory.
  uint64_t CheckLocal(const Entry& entry, uint64_t next) const {
    const std::string name = Escaped(entry.name);
    const uint64_t at = entry.header_offset;
    if (next < at || next - at < zip::kLocalBytes || Get<uint32_t>(at) != zip::kLocalSignature) {
      Fail(fmt::format("no local header for record '{}' at byte {}", name, at));
    }
    const uint64_t name_size = Get<uint16_t>(at + 26), extra_size = Get<uint16_t>(at + 28);
    const uint64_t data = at + zip::kLocalBytes + name_size + extra_size;
    if (data > next || entry.size > next - data) {
      Fail(fmt::format("record '{}' runs into the one after it", name));
    }
    uint64_t size = Get<uint32_t>(at + 22), stored = Get<uint32_t>(at + 18);
    const uint32_t crc = Get<uint32_t>(at + 14);
    ReadExtra(at + zip::kLocalBytes + name_size, extra_size, entry.name, {&size, &stored, nullptr});
    const bool descriptor = (entry.flags & zip::kFlagDescriptor) != 0;
    const bool zeros = descriptor && size == 0 && stored == 0 && crc == 0;
    const bool equal = size == entry.size && stored == entry.size && crc == entry.crc;
    if (Text(at + zip::kLocalBytes, name_size) != entry.name ||
        Get<uint16_t>(at + 6) != entry.flags || Get<uint16_t>(at + 8) != entry.method ||
        Get<uint16_t>(at + 10) != entry.time || Get<uint16_t>(at + 12) != entry.date ||
        !(zeros || equal)) {
      Fail(fmt::format("local header and directory disagree on record '{}'", name));
    }
    const uint64_t rest = next - data - entry.size;
    if (descriptor ? !DescriptorMatches(entry, data + entry.size, rest) : rest != 0) {
      Fail(fmt::format("{} unexplained bytes after record '{}'", rest, name));
    }
    return data;
  }

  bool DescriptorMatches(const Entry& entry, uint64_t at, uint64_t size) const {
    if (size != zip::kDescriptorBytes && size != zip::kDescriptor64Bytes) return false;
    if (Get<uint32_t>(at) != zip::kDescriptorSignature || Get<uint32_t>(at + 4) != entry.crc) {
      return false;
    }
    if (size == zip::kDescriptorBytes) {
      return Get<uint32_t>(at + 8) == entry.size && Get<uint32_t>(at + 12) == entry.size;
    }
    return Get<uint64_t>(at + 8) == entry.size && Get<uint64_t>(at + 16) == entry.size;
  }

  // Reads the extra fields: torch.save's padding and zip64. A field whose 32-bit value is saturated
  // must have its 64-bit value in zip64. Null `fields` do not exist in this header.
  void ReadExtra(uint64_t at, uint64_t size, std::string_view name,
                 std::vector<uint64_t*> fields) const {
    std::erase_if(fields, [](const uint64_t* f) { return f == nullptr || *f != zip::kMax32; });
    const uint64_t end = at + size;
    bool have_zip64 = false;
    while (at != end) {
      if (end - at < 4) Fail(fmt::format("truncated extra field of record '{}'", Escaped(name)));
      const uint16_t id = Get<uint16_t>(at), length = Get<uint16_t>(at + 2);
      at += 4;
      if (end - at < length)
        Fail(fmt::format("truncated extra field of record '{}'", Escaped(name)));
      if (id == zip::kExtraZip64 && !have_zip64 && length == 8 * fields.size()) {
        have_zip64 = true;
        for (size_t i = 0; i < fields.size(); ++i) *fields[i] = Get<uint64_t>(at + 8 * i);
      } else if (id != zip::kExtraPadding || !IsPadding(at, length)) {
        Fail(fmt::format("extra field {:#06x} of {} bytes at record '{}'", id, length,
                         Escaped(name)));
      }
      at += length;
    }
    if (!fields.empty() && !have_zip64) {
      Fail(fmt::format("record '{}' needs a zip64 field and has none", Escaped(name)));
    }
  }

  bool IsPadding(uint64_t at, uint64_t size) const {
    const Bytes padding = bytes_.subspan(at, size);
    return std::all_of(padding.begin(), padding.end(), [&](std::byte b) {
      return b == padding[0] && (b == std::byte{zip::kPaddingByte} || b == std::byte{0});
    });
  }

  template <typename T>
  T Get(uint64_t offset) const {
    return zip::Load<T>(bytes_, offset);
  }
  std::string Text(uint64_t offset, uint64_t size) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + offset, size};
  }

  const std::filesystem::path& path_;
  Bytes bytes_;
  Directory directory_;
};

uint32_t Crc32(Bytes bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

}  // namespace

ZipReader ZipReader::Open(MappedFile file) {
  ZipReader reader;
  reader.file_ = std::move(file);
  const Bytes bytes = reader.file_.bytes();
  Parser parser(reader.path(), bytes);
  const std::vector<Entry> entries = parser.ReadDirectory();
  const std::vector<uint64_t> data = parser.CheckLayout(entries);
  reader.prefix_ = entries[0].name.substr(0, entries[0].name.find('/'));
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    const std::string shown = Escaped(entry.name);
    if (!entry.name.starts_with(reader.prefix_ + '/')) {
      parser.Fail(
          fmt::format("record '{}' is not under the prefix '{}/'", shown, Escaped(reader.prefix_)));
    }
    ZipRecord record{entry.name.substr(reader.prefix_.size() + 1), data[i], entry.size, entry.crc};
    const uint32_t crc = Crc32(bytes.subspan(record.offset, record.size));
    if (kComparesDigests && crc != record.crc) {
      parser.Fail(
          fmt::format("record '{}' has CRC {:08x}, but its header says {:08x}; the file is damaged",
                      shown, crc, record.crc));
    }
    if (!reader.index_.emplace(record.name, i).second) {
      parser.Fail(fmt::format("record '{}' appears twice", shown));
    }
    reader.records_.push_back(std::move(record));
  }
  return reader;
}

std::optional<std::span<const std::byte>> ZipReader::Find(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return std::nullopt;
  const ZipRecord& record = records_[found->second];
  return file_.bytes().subspan(record.offset, record.size);
}

std::span<const std::byte> ZipReader::record(std::string_view name) const {
  const auto found = Find(name);
  if (!found) {
    throw InputError(
        fmt::format("{}: no record '{}' in the archive; save the file again with "
                    "torch.save(object, path)",
                    path().string(), Escaped(name)));
  }
  return *found;
}

}  // namespace oscar
