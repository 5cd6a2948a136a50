// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>

#include "capture/files/quote.h"
#include "linalg/error.h"

namespace oscar {
namespace {

static_assert(std::endian::native == std::endian::little);  // so is the file

// Of ggml: GGML_MAX_DIMS, GGML_MAX_NAME with its zero. Of us, so that a header takes little memory:
// the largest models have 2000 tensors, the longest headers 100 entries.
constexpr uint64_t kMaxGgufDims = 4, kMaxName = 63, kMaxKey = 65535;
constexpr uint64_t kMaxTensors = 1 << 18, kMaxEntries = 1 << 14, kMaxAlignment = 1 << 20;

// Values of a ggml type, in blocks.
struct BlockType {
  uint32_t type;
  uint64_t values, bytes;  // of one block
};

// ggml.c, type_traits; what is not here has the size that the next tensor's offset gives it.
constexpr std::array kBlockTypes = {
    BlockType{0, 1, 4},      BlockType{1, 1, 2},      BlockType{2, 32, 18},
    BlockType{3, 32, 20},    BlockType{6, 32, 22},    BlockType{7, 32, 24},
    BlockType{8, 32, 34},    BlockType{10, 256, 84},  BlockType{11, 256, 110},
    BlockType{12, 256, 144}, BlockType{13, 256, 176}, BlockType{14, 256, 210},
    BlockType{15, 256, 292}, BlockType{16, 256, 66},  BlockType{17, 256, 74},
    BlockType{18, 256, 98},  BlockType{19, 256, 50},  BlockType{20, 32, 18},
    BlockType{21, 256, 110}, BlockType{22, 256, 82},  BlockType{23, 256, 136},
    BlockType{24, 1, 1},     BlockType{25, 1, 2},     BlockType{26, 1, 4},
    BlockType{27, 1, 8},     BlockType{28, 1, 8},     BlockType{29, 256, 56},
    BlockType{30, 1, 2},     BlockType{34, 256, 54},  BlockType{35, 256, 66},
    BlockType{39, 32, 17}};

class GgufReader {
 public:
  explicit GgufReader(const MappedFile& file) : file_(file) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.bytes().size() - at_; }

  [[noreturn]] void Fail(const std::string& what) const {
    throw InputError(fmt::format("{}: byte {}: {}", file_.path().string(), at_, what));
  }

  template <typename T>
  T Number(std::string_view what) {
    Need(sizeof(T), what);
    T value;
    std::memcpy(&value, file_.bytes().data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string_view String(uint64_t max_bytes, std::string_view what) {
    const auto size = Number<uint64_t>(what);
    if (size > max_bytes)
      Fail(fmt::format("{} of {} bytes, and it may have {}", what, size, max_bytes));
    Need(size, what);
    const auto* text = reinterpret_cast<const char*>(file_.bytes().data() + at_);
    at_ += size;
    return {text, size};
  }

  void Skip(uint64_t count, uint64_t bytes_each, std::string_view what) {
    if (count > left() / bytes_each)
      Fail(fmt::format("{} of {} values, and the file ends before", what, count));
    at_ += count * bytes_each;
  }

 private:
  void Need(uint64_t bytes, std::string_view what) const {
    if (bytes > left()) Fail(fmt::format("the file ends in {}", what));
  }

  const MappedFile& file_;
  uint64_t at_ = 0;
};

// Bytes of a value of that type; 0: a string, an array or no type at all.
uint64_t FixedSize(uint32_t type) {
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool:
      return 1;
    case kUint16:
    case kInt16:
      return 2;
    case kUint32:
    case kInt32:
    case kFloat32:
      return 4;
    case kUint64:
    case kInt64:
    case kFloat64:
      return 8;
    default:
      return 0;
  }
}

void SkipArray(GgufReader& in) {
  const auto type = in.Number<uint32_t>("an array's type");
  const auto count = in.Number<uint64_t>("an array's length");
  if (type == kString) {
    if (count > in.left() / sizeof(uint64_t))
      in.Fail(fmt::format("an array of {} strings, and the file ends before", count));
    for (uint64_t i = 0; i < count; ++i) in.String(in.left(), "a string of an array");
    return;
  }
  const uint64_t bytes = FixedSize(type);
  if (bytes == 0) in.Fail(fmt::format("an array of type {}, which llama.cpp reads none of", type));
  in.Skip(count, bytes, "an array");
}

GgufValue ReadGgufValue(GgufReader& in) {
  constexpr std::string_view kWhat = "a value";
  const auto type = in.Number<uint32_t>("a value's type");
  switch (type) {
    case kUint8:
      return static_cast<uint64_t>(in.Number<uint8_t>(kWhat));
    case kInt8:
      return static_cast<int64_t>(in.Number<int8_t>(kWhat));
    case kUint16:
      return static_cast<uint64_t>(in.Number<uint16_t>(kWhat));
    case kInt16:
      return static_cast<int64_t>(in.Number<int16_t>(kWhat));
    case kUint32:
      return static_cast<uint64_t>(in.Number<uint32_t>(kWhat));
    case kInt32:
      return static_cast<int64_t>(in.Number<int32_t>(kWhat));
    case kFloat32:
      return static_cast<double>(in.Number<float>(kWhat));
    case kBool: {
      const auto value = in.Number<uint8_t>(kWhat);
      if (value > 1) in.Fail(fmt::format("a bool of value {}", value));
      return value == 1;
    }
    case kString:
      return in.String(in.left(), kWhat);
    case kArray:
      SkipArray(in);
      return std::monostate();
    case kUint64:
      return in.Number<uint64_t>(kWhat);
    case kInt64:
      return in.Number<int64_t>(kWhat);
    case kFloat64:
      return in.Number<double>(kWhat);
    default:
      in.Fail(fmt::format("a value of type {}; there are 0 to {}", type, +kFloat64));
  }
}

void ReadEntries(GgufReader& in, uint64_t count, GgufFile& out) {
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view key = in.String(kMaxKey, "a key");
    const GgufValue value = ReadGgufValue(in);
    if (!out.entries.emplace(key, value).second)
      in.Fail(fmt::format("key {} is there twice", Quoted(key)));
  }
  const auto alignment = out.entries.find(kGgufAlignmentKey);
  if (alignment == out.entries.end()) return;
  const uint64_t* const bytes = std::get_if<uint64_t>(&alignment->second);
  if (bytes == nullptr || !std::has_single_bit(*bytes) || *bytes > kMaxAlignment) {
    in.Fail(fmt::format("{} is no power of two up to {}", kGgufAlignmentKey, kMaxAlignment));
  }
  out.alignment = *bytes;
}

// Of a tensor whose type is known.
std::optional<uint64_t> GgufSize(const GgufReader& in, const GgufTensorInfo& tensor) {
  const auto known = std::ranges::find(kBlockTypes, tensor.type, &BlockType::type);
  if (known == kBlockTypes.end()) return std::nullopt;
  if (tensor.dims.at(0) % known->values != 0) {
    in.Fail(fmt::format("tensor {} has rows of {} values, in blocks of {}", Quoted(tensor.name),
                        tensor.dims[0], known->values));
  }
  uint64_t bytes = known->bytes;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    const uint64_t blocks = i == 0 ? tensor.dims[0] / known->values : tensor.dims[i];
    if (__builtin_mul_overflow(bytes, blocks, &bytes))
      in.Fail(fmt::format("tensor {} has more bytes than 64 bits count", Quoted(tensor.name)));
  }
  return bytes;
}

void ReadInfos(GgufReader& in, uint64_t count, GgufFile& out) {
  std::set<std::string_view> names;
  for (uint64_t i = 0; i < count; ++i) {
    GgufTensorInfo tensor;
    tensor.name = in.String(kMaxName, "a tensor's name");
    if (!names.insert(tensor.name).second)
      in.Fail(fmt::format("tensor {} is there twice", Quoted(tensor.name)));
    const auto num_dims = in.Number<uint32_t>("a tensor's number of dimensions");
    if (num_dims < 1 || num_dims > kMaxGgufDims) {
      in.Fail(fmt::format("tensor {} has {} dimensions; expected 1 to {}", Quoted(tensor.name),
                          num_dims, kMaxGgufDims));
    }
    for (uint32_t dim = 0; dim < num_dims; ++dim) {
      tensor.dims.push_back(in.Number<uint64_t>("a tensor's dimensions"));
      if (tensor.dims.back() == 0)
        in.Fail(fmt::format("tensor {} has a dimension of 0", Quoted(tensor.name)));
    }
    tensor.type = in.Number<uint32_t>("a tensor's type");
    tensor.offset = in.Number<uint64_t>("a tensor's offset");
    tensor.size = GgufSize(in, tensor).value_or(0);
    out.tensors.push_back(std::move(tensor));
  }
}

// llama.cpp takes tensors that lie one behind another alone (gguf.cpp, gguf_init_from_file_impl).
void PlaceTensors(const GgufReader& in, GgufFile& out) {
  const uint64_t file_size = out.file.bytes().size();
  out.data_begin = GgufPadded(out.infos_end, out.alignment);
  if (out.tensors.empty()) {
    out.data_begin = std::min(out.data_begin, file_size);
  } else if (out.data_begin > file_size) {
    in.Fail("the file ends before its tensors");
  }
  const uint64_t data_size = file_size - out.data_begin;
  uint64_t expected = 0;  // offset
  for (size_t i = 0; i < out.tensors.size(); ++i) {
    GgufTensorInfo& tensor = out.tensors[i];
    if (tensor.offset != expected) {
      in.Fail(fmt::format("tensor {} is at offset {}; expected {}, where the one before it ends",
                          Quoted(tensor.name), tensor.offset, expected));
    }
    if (tensor.size == 0) {
      const uint64_t next = i + 1 < out.tensors.size() ? out.tensors[i + 1].offset : data_size;
      if (next <= expected || next > data_size) {
        in.Fail(
            fmt::format("tensor {} of type {}, which has no known size, ends at offset {} of {}",
                        Quoted(tensor.name), tensor.type, next, data_size));
      }
      tensor.size = next - expected;
    }
    if (tensor.size > data_size - expected) {
      in.Fail(fmt::format("tensor {} has {} bytes, and the file {} for it", Quoted(tensor.name),
                          tensor.size, data_size - expected));
    }
    // The last one's padding may be missing.
    expected = GgufPadded(expected + tensor.size, out.alignment);
    if (i + 1 < out.tensors.size() && expected > data_size)
      in.Fail(fmt::format("the file ends behind tensor {}", Quoted(tensor.name)));
  }
  if (expected < data_size) {
    in.Fail(fmt::format("{} bytes behind the last tensor belong to none", data_size - expected));
  }
}

}  // namespace

GgufFile GgufFile::Open(MappedFile file) {
  GgufFile out;
  out.file = std::move(file);
  GgufReader in(out.file);
  if (in.Number<uint32_t>("the magic number") != kGgufMagic) in.Fail("no GGUF file: other magic");
  out.version = in.Number<uint32_t>("the version");
  if (out.version != 2 && out.version != 3) {
    const bool swapped = (out.version & 0xFFFF) == 0;
    in.Fail(swapped ? std::string("big-endian GGUF; expected little-endian")
                    : fmt::format("GGUF version {}; expected 2 or 3", out.version));
  }
  const auto num_tensors = in.Number<uint64_t>("the number of tensors");
  const auto num_entries = in.Number<uint64_t>("the number of entries");
  if (num_tensors > kMaxTensors || num_entries > kMaxEntries) {
    in.Fail(fmt::format("{} tensors and {} entries; expected up to {} and {}", num_tensors,
                        num_entries, kMaxTensors, kMaxEntries));
  }
  ReadEntries(in, num_entries, out);
  out.entries_end = in.at();
  ReadInfos(in, num_tensors, out);
  out.infos_end = in.at();
  PlaceTensors(in, out);
  return out;
}

const GgufTensorInfo* GgufFile::Find(std::string_view name) const {
  const auto tensor = std::ranges::find(tensors, name, &GgufTensorInfo::name);
  return tensor == tensors.end() ? nullptr : &*tensor;
}

std::span<const std::byte> GgufFile::Bytes(const GgufTensorInfo& tensor) const {
  return file.bytes().subspan(data_begin + tensor.offset, tensor.size);
}

}  // namespace oscar
