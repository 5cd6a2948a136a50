// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/onnx_initializers.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <limits>

#include "capture/files/atomic_file.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

static_assert(std::endian::native == std::endian::little);  // raw_data is little-endian

constexpr int64_t kIrVersion = 8, kOpset = 17;  // onnx 1.13

// A protocol buffer message. Fields are appended in order.
class Message {
 public:
  void Int(int field, int64_t value) {
    Key(field, 0);
    Varint(static_cast<uint64_t>(value));
  }
  void Bytes(int field, std::string_view bytes) {
    Key(field, 2);
    Varint(bytes.size());
    bytes_ += bytes;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Key(int field, uint64_t wire_type) { Varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  void Varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

std::string TensorMessage(const OnnxInitializer& initializer) {
  constexpr int64_t kFloat = 1;
  const FloatTensor& tensor = *initializer.values;
  Message message;
  for (const int64_t size : tensor.shape) message.Int(/*dims*/ 1, size);
  message.Int(/*data_type*/ 2, kFloat);
  message.Bytes(/*name*/ 8, initializer.name);
  message.Bytes(/*raw_data*/ 9, {reinterpret_cast<const char*>(tensor.values.data()),
                                 tensor.values.size() * sizeof(float)});
  return message.bytes();
}

std::string EntryMessage(const std::string& key, const std::string& value) {
  Message entry;
  entry.Bytes(1, key);
  entry.Bytes(2, value);
  return entry.bytes();
}

}  // namespace

void WriteOnnxInitializers(const std::filesystem::path& path, std::string_view graph_name,
                           const std::vector<OnnxInitializer>& initializers,
                           const std::map<std::string, std::string>& metadata) {
  Message graph;
  graph.Bytes(/*name*/ 2, graph_name);
  for (const OnnxInitializer& initializer : initializers)
    graph.Bytes(/*initializer*/ 5, TensorMessage(initializer));
  Message opset;
  opset.Bytes(/*domain*/ 1, "");
  opset.Int(/*version*/ 2, kOpset);
  Message model;
  model.Int(/*ir_version*/ 1, kIrVersion);
  model.Bytes(/*producer_name*/ 2, "oscar");
  model.Bytes(/*graph*/ 7, graph.bytes());
  model.Bytes(/*opset_import*/ 8, opset.bytes());
  for (const auto& [key, value] : metadata)
    model.Bytes(/*metadata_props*/ 14, EntryMessage(key, value));
  if (model.bytes().size() > std::numeric_limits<int32_t>::max()) {
    throw InputError(
        fmt::format("{}: the rotations have {} bytes, but an ONNX file can hold at most 2 GiB",
                    path.string(), model.bytes().size()));
  }
  WriteFileAtomically(path, model.bytes());
}

}  // namespace oscar
