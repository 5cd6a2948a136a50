// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/onnx_initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "capture/files/atomic_file.h"
#include "capture/files/mapped_file.h"
#include "capture/files/quote.h"
#include "export/formats/layer_of_name.h"
#include "export/formats/rotation_checks.h"
#include "linalg/error.h"

namespace oscar {
namespace {

static_assert(std::endian::native == std::endian::little);  // raw_data is

constexpr int64_t kIrVersion = 8, kOpset = 17;  // onnx 1.13

// A message of protocol buffers, field by field in the order given.
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
    throw InputError(fmt::format("{}: {} bytes of rotations, and an ONNX file holds 2 GiB",
                                 path.string(), model.bytes().size()));
  }
  WriteFileAtomically(path, model.bytes());
}

namespace {

constexpr int64_t kMostHeads = 1 << 16, kMostDim = 1 << 14;

// The fields of a message in file order, inside bytes that nobody vouches for.
class MessageReader {
 public:
  MessageReader(std::string_view message, const std::string& file) : bytes_(message), file_(file) {}

  // The next field; of numbers `value`, of what has a length `bytes`. False at the end.
  bool Next() {
    if (at_ == bytes_.size()) return false;
    const uint64_t key = Varint();
    field = static_cast<int>(std::min<uint64_t>(key >> 3, std::numeric_limits<int>::max()));
    bytes = {};
    value = 0;
    switch (key & 7) {
      case 0:
        value = Varint();
        return true;
      case 1:
        bytes = Take(8);
        return true;
      case 2:
        bytes = Take(Varint());
        return true;
      case 5:
        bytes = Take(4);
        return true;
      default:
        Refuse(fmt::format("wire type {}", key & 7));
    }
  }

  [[noreturn]] void Refuse(const std::string& why) const {
    throw InputError(fmt::format("{}: no ONNX model: {} at byte {} of a message of {}", file_, why,
                                 at_, bytes_.size()));
  }

  int field = 0;
  uint64_t value = 0;
  std::string_view bytes;

 private:
  uint64_t Varint() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) Refuse("a number that does not end");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      number |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return number;
    }
    Refuse("a number of more than 64 bits");
  }
  std::string_view Take(uint64_t size) {
    if (size > bytes_.size() - at_) Refuse(fmt::format("{} bytes that are not there", size));
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  std::string_view bytes_;
  const std::string& file_;
  size_t at_ = 0;
};

struct RawTensor {
  std::string_view name, raw;
  std::vector<int64_t> shape;
  uint64_t type = 0;
};

RawTensor ReadRawTensor(std::string_view message, const std::string& file) {
  RawTensor tensor;
  for (MessageReader reader(message, file); reader.Next();) {
    if (reader.field == 1 && reader.bytes.empty())
      tensor.shape.push_back(static_cast<int64_t>(reader.value));
    if (reader.field == 1) {  // packed
      for (std::string_view packed = reader.bytes; !packed.empty();) {
        uint64_t dim = 0;
        int shift = 0;
        for (bool more = true; more && !packed.empty() && shift < 64; shift += 7) {
          const auto byte = static_cast<unsigned char>(packed.front());
          packed.remove_prefix(1);
          dim |= static_cast<uint64_t>(byte & 127) << shift;
          more = byte >= 128;
        }
        tensor.shape.push_back(static_cast<int64_t>(dim));
      }
    }
    if (reader.field == 2) tensor.type = reader.value;
    if (reader.field == 8) tensor.name = reader.bytes;
    if (reader.field == 4 || reader.field == 9) tensor.raw = reader.bytes;  // packed floats alike
  }
  return tensor;
}

FloatTensorPtr RotationOf(const RawTensor& tensor, const std::string& where) {
  constexpr uint64_t kFloat = 1;
  const std::vector<int64_t>& shape = tensor.shape;
  if (tensor.type != kFloat) {
    throw InputError(
        fmt::format("{}: type {} of TensorProto, expected 1, FLOAT", where, tensor.type));
  }
  if (shape.size() != 3 || shape[0] < 1 || shape[0] > kMostHeads || shape[1] < 1 ||
      shape[1] > kMostDim || shape[1] != shape[2]) {
    throw InputError(where + ": expected [num_kv_heads, d, d]");
  }
  const auto count = static_cast<size_t>(shape[0] * shape[1] * shape[2]);
  if (tensor.raw.size() != count * sizeof(float)) {
    throw InputError(
        fmt::format("{}: {} bytes of values, expected {}; values of an external file "
                    "are not read",
                    where, tensor.raw.size(), count * sizeof(float)));
  }
  FloatTensor values{shape, std::vector<float>(count)};
  std::memcpy(values.values.data(), tensor.raw.data(), tensor.raw.size());
  CheckFinite(values, where);
  return std::make_shared<const FloatTensor>(std::move(values));
}

}  // namespace

OnnxRotations ReadOnnxRotations(const std::filesystem::path& path) {
  const MappedFile mapped = MappedFile::Open(path);
  const std::string file = path.string();
  const std::string_view bytes(reinterpret_cast<const char*>(mapped.bytes().data()),
                               mapped.bytes().size());
  OnnxRotations read;
  const auto add = [&](const RawTensor& tensor) {
    const bool keys = tensor.name.ends_with("R_K");
    if (!keys && !tensor.name.ends_with("R_V")) return;
    const std::string where = fmt::format("{}: {}", file, Escaped(tensor.name));
    // As "model.layers.3.attn.R_K" or "/layers.3/attn/R_K".
    const auto layer = LayerOfName(tensor.name, "./");
    if (!layer) throw InputError(where + ": does not say its layer, expected layers.<i>");
    auto& [k, v] = read.layers[*layer];
    FloatTensorPtr& side = keys ? k : v;
    if (side) throw InputError(where + ": the layer has another one");
    side = RotationOf(tensor, where);
  };
  for (MessageReader model(bytes, file); model.Next();) {
    if (model.field == 2) read.producer = model.bytes;
    if (model.field == 14) {
      std::string key, value;
      for (MessageReader entry(model.bytes, file); entry.Next();)
        (entry.field == 1 ? key : value) = entry.bytes;
      read.metadata[key] = value;
    }
    if (model.field != 7) continue;
    for (MessageReader graph(model.bytes, file); graph.Next();)
      if (graph.field == 5) add(ReadRawTensor(graph.bytes, file));
  }
  if (read.layers.empty()) {
    throw InputError(file +
                     ": no initializer is called ...layers.<i>....R_K or R_V, which are what can "
                     "be imported");
  }
  return read;
}

}  // namespace oscar
