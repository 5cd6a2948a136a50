// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/atomic_file.h"
#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// The bytes of a header while it is built.
class GgufHeader {
 public:
  template <typename T>
  void Number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void String(std::string_view text) {
    Number<uint64_t>(text.size());
    bytes_ += text;
  }
  void Raw(std::span<const std::byte> bytes) {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void Entry(const GgufEntry& entry) {
    String(entry.key);
    if (const auto* flag = std::get_if<bool>(&entry.value)) {
      Number<uint32_t>(kBool);
      Number<uint8_t>(*flag ? 1 : 0);
    } else if (const auto* number = std::get_if<uint32_t>(&entry.value)) {
      Number<uint32_t>(kUint32);
      Number(*number);
    } else if (const auto* real = std::get_if<float>(&entry.value)) {
      Number<uint32_t>(kFloat32);
      Number(*real);
    } else {
      Number<uint32_t>(kString);
      String(std::get<std::string>(entry.value));
    }
  }
  void Info(const GgufTensor& tensor, uint64_t offset) {
    String(tensor.name);
    const std::vector<int64_t>& shape = tensor.values->shape;
    Number(static_cast<uint32_t>(shape.size()));
    for (auto size = shape.rbegin(); size != shape.rend(); ++size)
      Number(static_cast<uint64_t>(*size));
    Number<uint32_t>(0);  // the type float32
    Number(offset);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

void WritePadding(AtomicFile& file, uint64_t size, uint64_t alignment) {
  file.Write(std::string(GgufPadded(size, alignment) - size, '\0'));
}

std::span<const std::byte> GgufBytes(const GgufTensor& tensor) {
  return std::as_bytes(std::span(tensor.values->values));
}

void CheckGgufReadBack(const std::filesystem::path& path, const std::vector<GgufTensor>& tensors) {
  const GgufFile read = GgufFile::Open(path);
  for (const GgufTensor& tensor : tensors) {
    const GgufTensorInfo* const info = read.Find(tensor.name);
    if (info == nullptr || !std::ranges::equal(read.Bytes(*info), GgufBytes(tensor))) {
      throw ResourceError(fmt::format(
          "{}: tensor {} differs from the written data when it is read back; check the disk",
          path.string(), tensor.name));
    }
  }
}

// The model's parts that precede the appended ones. Empty for a new file.
struct BeforeOurs {
  uint32_t version = 3;
  uint64_t alignment = 32, num_entries = 0, num_tensors = 0;
  std::span<const std::byte> entries = {}, infos = {}, data = {};
};

void WriteAppended(const std::filesystem::path& path, const BeforeOurs& before,
                   const std::vector<GgufEntry>& entries, const std::vector<GgufTensor>& tensors) {
  GgufHeader header;
  header.Number(kGgufMagic);
  header.Number(before.version);
  header.Number(before.num_tensors + tensors.size());
  header.Number(before.num_entries + entries.size());
  header.Raw(before.entries);
  for (const GgufEntry& entry : entries) header.Entry(entry);
  header.Raw(before.infos);
  uint64_t offset = GgufPadded(before.data.size(), before.alignment);
  for (const GgufTensor& tensor : tensors) {
    header.Info(tensor, offset);
    offset = GgufPadded(offset + GgufBytes(tensor).size(), before.alignment);
  }
  {
    AtomicFile file(path);
    file.Write(header.bytes());
    WritePadding(file, header.bytes().size(), before.alignment);
    constexpr size_t kPiece = size_t{16} << 20;  // bytes
    for (size_t at = 0; at < before.data.size(); at += kPiece)
      file.Write(before.data.subspan(at, std::min(kPiece, before.data.size() - at)));
    WritePadding(file, before.data.size(), before.alignment);
    for (const GgufTensor& tensor : tensors) {
      file.Write(GgufBytes(tensor));
      WritePadding(file, GgufBytes(tensor).size(), before.alignment);
    }
    file.Commit();
  }
  CheckGgufReadBack(path, tensors);
}

}  // namespace

void WriteGguf(const std::filesystem::path& path, const std::vector<GgufEntry>& entries,
               const std::vector<GgufTensor>& tensors) {
  BeforeOurs before;
  std::vector<GgufEntry> all = {
      {std::string(kGgufAlignmentKey), static_cast<uint32_t>(before.alignment)}};
  all.insert(all.end(), entries.begin(), entries.end());
  WriteAppended(path, before, all, tensors);
}

void AppendToGguf(const GgufFile& model, const std::filesystem::path& path,
                  const std::vector<GgufEntry>& entries, const std::vector<GgufTensor>& tensors) {
  const auto refuse = [&](std::string_view what, std::string_view name) {
    throw InputError(fmt::format("{}: already has {} {}; use a file without it",
                                 model.file.path().string(), what, Quoted(name)));
  };
  for (const GgufTensor& tensor : tensors)
    if (model.Find(tensor.name) != nullptr) refuse("tensor", tensor.name);
  for (const GgufEntry& entry : entries)
    if (model.entries.contains(entry.key)) refuse("entry", entry.key);
  const std::span<const std::byte> bytes = model.file.bytes();
  WriteAppended(path,
                {.version = model.version,
                 .alignment = model.alignment,
                 .num_entries = model.entries.size(),
                 .num_tensors = model.tensors.size(),
                 .entries = bytes.subspan(kGgufHeaderSize, model.entries_end - kGgufHeaderSize),
                 .infos = bytes.subspan(model.entries_end, model.infos_end - model.entries_end),
                 .data = bytes.subspan(model.data_begin)},
                entries, tensors);
}

}  // namespace oscar
