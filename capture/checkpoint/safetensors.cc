// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <utility>

#include "capture/checkpoint/safetensors_header.h"
#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

uint64_t DeclaredBytes(const SafetensorsWriter::Declaration& tensor) {
  const std::optional<uint64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
  OSCAR_CHECK(bytes.has_value());
  return *bytes;
}

}  // namespace

SafetensorsFile SafetensorsFile::Open(const std::filesystem::path& path) {
  return Open(MappedFile::Open(path));
}

SafetensorsFile SafetensorsFile::Open(MappedFile bytes) {
  SafetensorsHeader header = ParseSafetensorsHeader(bytes.bytes(), bytes.path().string());
  SafetensorsFile file;
  static_cast<TensorFile&>(file) = TensorFile(std::move(bytes), std::move(header.tensors));
  file.metadata_ = std::move(header.metadata);
  return file;
}

TensorView TensorFile::tensor(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) {
    throw InputError(fmt::format("{}: contains no tensor {}", path().string(), Quoted(name)));
  }
  const TensorInfo& info = it->second;
  return {info.dtype, info.shape, file_.bytes().subspan(info.offset, info.size)};
}

void TensorFile::Release(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) {
    throw InputError(fmt::format("{}: contains no tensor {}", path().string(), Quoted(name)));
  }
  file_.Release(it->second.offset, it->second.size);
}

void TensorFile::Rename(const std::string& from, const std::string& to) {
  auto node = tensors_.extract(from);
  OSCAR_CHECK(!node.empty());
  node.key() = to;
  OSCAR_CHECK(tensors_.insert(std::move(node)).inserted);
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<Declaration> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)), file_(path) {
  file_.Write(EncodeSafetensorsHeader(tensors_, metadata));
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
