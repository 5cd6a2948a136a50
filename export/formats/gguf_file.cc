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

#include "capture/files/atomic_file.h"
#include "capture/files/quote.h"
#include "linalg/error.h"

namespace oscar {
namespace {

static_assert(std::endian::native == std::endian::little);  // so is the file

constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kGgufHeaderSize = 24;     // bytes
constexpr std::string_view kAlignmentKey = "general.alignment";
// Of ggml: GGML_MAX_DIMS, GGML_MAX_NAME with its zero. Of us, so that a header takes little memory:
// the largest models have 2000 tensors, the longest headers 100 entries.
constexpr uint64_t kMaxGgufDims = 4, kMaxName = 63, kMaxKey = 65535;
constexpr uint64_t kMaxTensors = 1 << 18, kMaxEntries = 1 << 14, kMaxAlignment = 1 << 20;

enum GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

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

// `alignment` is a power of two and `bytes` within a file's size.
constexpr uint64_t PaddedTo(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

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
  const auto alignment = out.entries.find(kAlignmentKey);
  if (alignment == out.entries.end()) return;
  const uint64_t* const bytes = std::get_if<uint64_t>(&alignment->second);
  if (bytes == nullptr || !std::has_single_bit(*bytes) || *bytes > kMaxAlignment) {
    in.Fail(fmt::format("{} is no power of two up to {}", kAlignmentKey, kMaxAlignment));
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
  out.data_begin = PaddedTo(out.infos_end, out.alignment);
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
    expected = PaddedTo(expected + tensor.size, out.alignment);
    if (i + 1 < out.tensors.size() && expected > data_size)
      in.Fail(fmt::format("the file ends behind tensor {}", Quoted(tensor.name)));
  }
  if (expected < data_size) {
    in.Fail(fmt::format("{} bytes behind the last tensor belong to none", data_size - expected));
  }
}

// Bytes of a header in the making.
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
    Number<uint32_t>(0);  // float32
    Number(offset);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

void WritePadding(AtomicFile& file, uint64_t size, uint64_t alignment) {
  file.Write(std::string(PaddedTo(size, alignment) - size, '\0'));
}

std::span<const std::byte> GgufBytes(const GgufTensor& tensor) {
  return std::as_bytes(std::span(tensor.values->values));
}

void CheckGgufReadBack(const std::filesystem::path& path, const std::vector<GgufTensor>& tensors) {
  const GgufFile read = GgufFile::Open(path);
  for (const GgufTensor& tensor : tensors) {
    const GgufTensorInfo* const info = read.Find(tensor.name);
    if (info == nullptr || !std::ranges::equal(read.Bytes(*info), GgufBytes(tensor))) {
      throw ResourceError(
          fmt::format("{}: tensor {} read back differs from what was written; check the disk",
                      path.string(), tensor.name));
    }
  }
}

// What stands before ours: of a new file nothing.
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
  uint64_t offset = PaddedTo(before.data.size(), before.alignment);
  for (const GgufTensor& tensor : tensors) {
    header.Info(tensor, offset);
    offset = PaddedTo(offset + GgufBytes(tensor).size(), before.alignment);
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

GgufFile GgufFile::Open(const std::filesystem::path& path) {
  GgufFile out;
  out.file = MappedFile::Open(path);
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

void WriteGguf(const std::filesystem::path& path, const std::vector<GgufEntry>& entries,
               const std::vector<GgufTensor>& tensors) {
  BeforeOurs before;
  std::vector<GgufEntry> all = {
      {std::string(kAlignmentKey), static_cast<uint32_t>(before.alignment)}};
  all.insert(all.end(), entries.begin(), entries.end());
  WriteAppended(path, before, all, tensors);
}

void AppendToGguf(const GgufFile& model, const std::filesystem::path& path,
                  const std::vector<GgufEntry>& entries, const std::vector<GgufTensor>& tensors) {
  const auto refuse = [&](std::string_view what, std::string_view name) {
    throw InputError(fmt::format("{}: has {} {} already; take the file without it",
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
