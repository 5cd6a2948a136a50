// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "capture/checkpoint/safetensors_header.h"
#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "linalg/check.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr size_t kDataAlignment = 8;  // bytes; what readers that map the file want

uint64_t DeclaredBytes(const SafetensorsWriter::Declaration& tensor) {
  const std::optional<uint64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
  OSCAR_CHECK(bytes.has_value());
  return *bytes;
}

// Length and JSON, padded. Keys in the order of the data, metadata first.
std::string EncodeHeader(const std::vector<SafetensorsWriter::Declaration>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  OSCAR_CHECK_LT(tensors.size(), kSafetensorsMaxTensors);
  std::vector<std::string> members;
  if (!metadata.empty()) {
    members.push_back(fmt::format("\"{}\":{}", kSafetensorsMetadataKey, Json(metadata).dump()));
  }
  std::set<std::string_view> names = {kSafetensorsMetadataKey};
  uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    const bool is_new = names.insert(tensor.name).second;
    OSCAR_CHECK(is_new);
    OSCAR_CHECK_LE(tensor.shape.size(), kSafetensorsMaxRank);
    const uint64_t end = offset + DeclaredBytes(tensor);
    members.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                  Json(tensor.name).dump(), DTypeName(tensor.dtype),
                                  fmt::join(tensor.shape, ","), offset, end));
    offset = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  text.append((kDataAlignment - text.size() % kDataAlignment) % kDataAlignment, ' ');
  OSCAR_CHECK_LE(text.size(), kSafetensorsMaxHeaderBytes);
  std::string length;
  for (size_t i = 0; i < kSafetensorsLengthBytes; ++i) {
    length += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  }
  return length + text;
}

}  // namespace

SafetensorsFile SafetensorsFile::Open(const std::filesystem::path& path) {
  SafetensorsFile file;
  file.file_ = MappedFile::Open(path);
  SafetensorsHeader header = ParseSafetensorsHeader(file.file_.bytes(), path.string());
  file.tensors_ = std::move(header.tensors);
  file.metadata_ = std::move(header.metadata);
  return file;
}

TensorView SafetensorsFile::tensor(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) {
    throw InputError(fmt::format("{}: there is no tensor {}", path().string(), Quoted(name)));
  }
  const TensorInfo& info = it->second;
  return {info.dtype, info.shape, file_.bytes().subspan(info.offset, info.size)};
}

void SafetensorsFile::Release(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) {
    throw InputError(fmt::format("{}: there is no tensor {}", path().string(), Quoted(name)));
  }
  file_.Release(it->second.offset, it->second.size);
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<Declaration> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)), file_(path) {
  file_.Write(EncodeHeader(tensors_, metadata));
}

void SafetensorsWriter::Write(std::string_view name, std::span<const std::byte> data) {
  OSCAR_CHECK_LT(next_, tensors_.size());
  OSCAR_CHECK_EQ(name, tensors_[next_].name);
  OSCAR_CHECK_EQ(data.size(), DeclaredBytes(tensors_[next_]));
  file_.Write(data);
  ++next_;
}

void SafetensorsWriter::Commit() {
  OSCAR_CHECK_EQ(next_, tensors_.size());
  file_.Commit();
}

}  // namespace oscar
