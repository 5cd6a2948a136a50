// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Follows the layout of caffe2::serialize::PyTorchStreamWriter over miniz. Padding is an extra
// field, so it takes at least 4 bytes, even if the data would be aligned without it.
#include "export/formats/pt/zip_writer.h"

#include <fmt/format.h>
#include <zlib.h>

#include <utility>

#include "export/formats/pt/zip_format.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

class ZipFields {
 public:
  template <typename T>
  ZipFields& Put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes_ += static_cast<char>((value >> (8 * i)) & 0xff);
    return *this;
  }
  ZipFields& Put16(uint64_t value) { return Put(static_cast<uint16_t>(value)); }
  ZipFields& Put32(uint64_t value) { return Put(static_cast<uint32_t>(value)); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

constexpr uint16_t kFlags = zip::kFlagDescriptor | zip::kFlagUtf8;
constexpr uint64_t kMaxArchive = uint64_t{zip::kMax32} - (uint64_t{1} << 20);  // bytes
constexpr uint64_t kMaxEntries = zip::kMax16 - 1;

}  // namespace

ZipWriter::ZipWriter(const std::filesystem::path& path, std::string prefix)
    : file_(path), path_(path), prefix_(std::move(prefix)) {}

void ZipWriter::Add(std::string_view name, std::span<const std::byte> data) {
  const uint64_t offset = file_.size();
  if (data.size() > kMaxArchive || offset + directory_.size() > kMaxArchive - data.size() ||
      count_ == kMaxEntries) {
    throw InputError(fmt::format(
        "{}: the file would exceed 4 GiB or 65,534 records; export fewer layers per file",
        path_.string()));
  }
  const std::string full = fmt::format("{}/{}", prefix_, name);
  const uint32_t crc = static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const unsigned char*>(data.data()), data.size()));
  const uint64_t unpadded = offset + zip::kLocalBytes + full.size() + 4;
  const uint64_t padding =
      (zip::kTorchAlignment - unpadded % zip::kTorchAlignment) % zip::kTorchAlignment;
  const auto size = static_cast<uint32_t>(data.size());

  ZipFields local;
  local.Put32(zip::kLocalSignature).Put16(0).Put16(kFlags).Put16(zip::kMethodStored);
  local.Put32(0).Put32(0).Put32(0).Put32(0);  // time and date, CRC, sizes
  local.Put16(full.size()).Put16(padding + 4);
  file_.Write(local.bytes());
  file_.Write(full);
  file_.Write(ZipFields().Put16(zip::kExtraPadding).Put16(padding).bytes());
  file_.Write(std::string(padding, zip::kPaddingByte));
  file_.Write(data);
  file_.Write(
      ZipFields().Put32(zip::kDescriptorSignature).Put32(crc).Put32(size).Put32(size).bytes());

  ZipFields central;
  central.Put32(zip::kCentralSignature).Put16(0).Put16(0).Put16(kFlags).Put16(zip::kMethodStored);
  central.Put32(0).Put32(crc).Put32(size).Put32(size);
  central.Put16(full.size()).Put16(0).Put16(0);      // extra field, comment
  central.Put16(0).Put16(0).Put32(0).Put32(offset);  // volume, attributes
  directory_ += central.bytes() + full;
  ++count_;
}

void ZipWriter::Commit() {
  const uint64_t offset = file_.size(), size = directory_.size(), end64 = offset + size;
  file_.Write(directory_);
  ZipFields end;
  end.Put32(zip::kEnd64Signature).Put(uint64_t{zip::kEnd64Bytes - 12});
  end.Put16(0x031e).Put16(45).Put32(0).Put32(0);  // made by (Unix, 3.0), needed, volumes
  end.Put(count_).Put(count_).Put(size).Put(offset);
  end.Put32(zip::kEnd64LocatorSignature).Put32(0).Put(end64).Put32(1);
  end.Put32(zip::kEndSignature).Put16(0).Put16(0).Put16(count_).Put16(count_);
  end.Put32(size).Put32(offset).Put16(0);
  file_.Write(end.bytes());
  file_.Commit();
}

}  // namespace oscar
