// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because all sections of the file are read by one cursor.
#include "capture/checkpoint/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>

#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

static_assert(std::endian::native == std::endian::little);  // same byte order as the file

// Limits of ggml: GGML_MAX_DIMS, and GGML_MAX_NAME less the terminating zero. Our own limits bound
// the memory of a header: the largest models have 2000 tensors, the longest headers 100 entries.
constexpr uint64_t kMaxGgufDims = 4, kMaxName = 63, kMaxKey = 65535;
constexpr uint64_t kMaxTensors = 1 << 18, kMaxEntries = 1 << 14, kMaxAlignment = 1 << 20;

// From type_traits in ggml.c. For other types, the next tensor's offset gives the size.
constexpr std::array kGgmlTypes = {
    GgmlType{0, "F32", 1, 4},         GgmlType{1, "F16", 1, 2},
    GgmlType{2, "Q4_0", 32, 18},      GgmlType{3, "Q4_1", 32, 20},
    GgmlType{6, "Q5_0", 32, 22},      GgmlType{7, "Q5_1", 32, 24},
    GgmlType{8, "Q8_0", 32, 34},      GgmlType{10, "Q2_K", 256, 84},
    GgmlType{11, "Q3_K", 256, 110},   GgmlType{12, "Q4_K", 256, 144},
    GgmlType{13, "Q5_K", 256, 176},   GgmlType{14, "Q6_K", 256, 210},
    GgmlType{15, "Q8_K", 256, 292},   GgmlType{16, "IQ2_XXS", 256, 66},
    GgmlType{17, "IQ2_XS", 256, 74},  GgmlType{18, "IQ3_XXS", 256, 98},
    GgmlType{19, "IQ1_S", 256, 50},   GgmlType{20, "IQ4_NL", 32, 18},
    GgmlType{21, "IQ3_S", 256, 110},  GgmlType{22, "IQ2_S", 256, 82},
    GgmlType{23, "IQ4_XS", 256, 136}, GgmlType{24, "I8", 1, 1},
    GgmlType{25, "I16", 1, 2},        GgmlType{26, "I32", 1, 4},
    GgmlType{27, "I64", 1, 8},        GgmlType{28, "F64", 1, 8},
    GgmlType{29, "IQ1_M", 256, 56},   GgmlType{30, "BF16", 1, 2},
    GgmlType{34, "TQ1_0", 256, 54},   GgmlType{35, "TQ2_0", 256, 66},
    GgmlType{39, "MXFP4", 32, 17}};

class GgufReader {
 public:
  GgufReader(const std::filesystem::path& path, std::string_view bytes)
      : path_(path), bytes_(bytes) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }
  std::string_view Since(uint64_t begin) const { return bytes_.substr(begin, at_ - begin); }

  [[noreturn]] void Fail(const std::string& what) const {
    throw InputError(fmt::format("{}: byte {}: {}", path_.string(), at_, what));
  }

  template <typename T>
  T Number(std::string_view what) {
    Need(sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string_view String(uint64_t max_bytes, std::string_view what) {
    const auto size = Number<uint64_t>(what);
    if (size > max_bytes)
      Fail(fmt::format("{} has {} bytes, expected at most {}", what, size, max_bytes));
    Need(size, what);
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  void Skip(uint64_t count, uint64_t bytes_each, std::string_view what) {
    if (count > left() / bytes_each)
      Fail(fmt::format("{} has {} values, but the file ends before them", what, count));
    at_ += count * bytes_each;
  }

 private:
  void Need(uint64_t bytes, std::string_view what) const {
    if (bytes > left()) Fail(fmt::format("the file ends inside {}", what));
  }

  const std::filesystem::path& path_;
  std::string_view bytes_;
  uint64_t at_ = 0;
};

// Bytes of a value of a type; 0 for a string, an array or an invalid type.
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

GgufArray ReadGgufArray(GgufReader& in) {
  const auto type = in.Number<uint32_t>("an array's type");
  const auto count = in.Number<uint64_t>("an array's length");
  const uint64_t begin = in.at();
  if (type == kString) {
    if (count > in.left() / sizeof(uint64_t))
      in.Fail(fmt::format("an array has {} strings, but the file ends before them", count));
    for (uint64_t i = 0; i < count; ++i) in.String(in.left(), "a string of an array");
  } else {
    const uint64_t bytes = FixedSize(type);
    if (bytes == 0)
      in.Fail(fmt::format("an array of type {}, which llama.cpp does not support", type));
    in.Skip(count, bytes, "an array");
  }
  return {type, count, in.Since(begin)};
}

GgufValue ReadGgufValue(GgufReader& in, uint32_t type) {
  constexpr std::string_view kWhat = "a value";
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
      if (value > 1) in.Fail(fmt::format("a bool has the value {}", value));
      return value == 1;
    }
    case kString:
      return in.String(in.left(), kWhat);
    case kArray:
      return ReadGgufArray(in);
    case kUint64:
      return in.Number<uint64_t>(kWhat);
    case kInt64:
      return in.Number<int64_t>(kWhat);
    case kFloat64:
      return in.Number<double>(kWhat);
    default:
      in.Fail(fmt::format("a value has type {}, expected 0 to {}", type, +kFloat64));
  }
}

void ReadEntries(GgufReader& in, uint64_t count, GgufFile& out) {
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view key = in.String(kMaxKey, "a key");
    const GgufValue value = ReadGgufValue(in, in.Number<uint32_t>("a value's type"));
    if (!out.entries.emplace(key, value).second)
      in.Fail(fmt::format("key {} appears twice", Quoted(key)));
  }
  const auto alignment = out.entries.find(kGgufAlignmentKey);
  if (alignment == out.entries.end()) return;
  const uint64_t* const bytes = std::get_if<uint64_t>(&alignment->second);
  if (bytes == nullptr || !std::has_single_bit(*bytes) || *bytes > kMaxAlignment) {
    in.Fail(fmt::format("{} is not a power of two up to {}", kGgufAlignmentKey, kMaxAlignment));
  }
  out.alignment = *bytes;
}

// Returns the size of a tensor in bytes, or nothing if its type is unknown.
std::optional<uint64_t> GgufSize(const GgufReader& in, const GgufTensorInfo& tensor) {
  const GgmlType* const known = FindGgmlType(tensor.type);
  if (known == nullptr) return std::nullopt;
  if (tensor.dims.at(0) % known->values != 0) {
    in.Fail(fmt::format("tensor {} has rows of {} values, expected a multiple of the block size {}",
                        Quoted(tensor.name), tensor.dims[0], known->values));
  }
  uint64_t bytes = known->bytes;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    const uint64_t blocks = i == 0 ? tensor.dims[0] / known->values : tensor.dims[i];
    if (__builtin_mul_overflow(bytes, blocks, &bytes))
      in.Fail(fmt::format("tensor {} has more bytes than 64 bits can count", Quoted(tensor.name)));
  }
  return bytes;
}

void ReadInfos(GgufReader& in, uint64_t count, GgufFile& out) {
  std::set<std::string_view> names;
  for (uint64_t i = 0; i < count; ++i) {
    GgufTensorInfo tensor;
    tensor.name = in.String(kMaxName, "a tensor's name");
    if (!names.insert(tensor.name).second)
      in.Fail(fmt::format("tensor {} appears twice", Quoted(tensor.name)));
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

// llama.cpp only accepts contiguous tensors (gguf.cpp, gguf_init_from_file_impl).
void PlaceTensors(const GgufReader& in, GgufFile& out) {
  const uint64_t file_size = out.file.bytes().size();
  out.data_begin = GgufPadded(out.infos_end, out.alignment);
  if (out.tensors.empty()) {
    out.data_begin = std::min(out.data_begin, file_size);
  } else if (out.data_begin > file_size) {
    in.Fail("the file ends before its tensors");
  }
  const uint64_t data_size = file_size - out.data_begin;
  uint64_t expected = 0;  // expected offset
  for (size_t i = 0; i < out.tensors.size(); ++i) {
    GgufTensorInfo& tensor = out.tensors[i];
    if (tensor.offset != expected) {
      in.Fail(fmt::format("tensor {} is at offset {}; expected {}, where the previous tensor ends",
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
      in.Fail(fmt::format("tensor {} needs {} bytes, but the file has only {} left",
                          Quoted(tensor.name), tensor.size, data_size - expected));
    }
    // The padding of the last tensor may be missing.
    expected = GgufPadded(expected + tensor.size, out.alignment);
    if (i + 1 < out.tensors.size() && expected > data_size)
      in.Fail(
          fmt::format("the file ends after tensor {}, before the next one", Quoted(tensor.name)));
  }
  if (expected < data_size) {
    in.Fail(
        fmt::format("{} bytes after the last tensor belong to no tensor", data_size - expected));
  }
}

std::optional<std::string_view> AsString(const GgufValue& value) {
  const auto* const text = std::get_if<std::string_view>(&value);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::optional<bool> AsBool(const GgufValue& value) {
  const bool* const flag = std::get_if<bool>(&value);
  return flag == nullptr ? std::nullopt : std::optional(*flag);
}

std::optional<uint64_t> AsCount(const GgufValue& value) {
  if (const auto* count = std::get_if<uint64_t>(&value)) return *count;
  const auto* const count = std::get_if<int64_t>(&value);
  return count == nullptr || *count < 0 ? std::nullopt : std::optional<uint64_t>(*count);
}

std::optional<double> AsNumber(const GgufValue& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  const std::optional<uint64_t> count = AsCount(value);
  return count ? std::optional(static_cast<double>(*count)) : std::nullopt;
}

[[noreturn]] void FailType(const GgufFile& file, std::string_view key, std::string_view expected,
                           const GgufValue& found) {
  constexpr std::array<std::string_view, 6> kNames = {"an array",   "a bool",  "an integer",
                                                      "an integer", "a float", "a string"};
  const auto* const negative = std::get_if<int64_t>(&found);
  throw InputError(
      fmt::format("{}: {}: expected {}, found {}", file.file.path().string(), Quoted(key), expected,
                  negative != nullptr ? std::to_string(*negative) : kNames.at(found.index())));
}

template <typename T>
using Reading = std::optional<T> (*)(const GgufValue&);

template <typename T>
std::optional<T> Scalar(const GgufFile& file, std::string_view key, std::string_view expected,
                        Reading<T> read) {
  const auto entry = file.entries.find(key);
  if (entry == file.entries.end()) return std::nullopt;
  const std::optional<T> value = read(entry->second);
  if (!value) FailType(file, key, expected, entry->second);
  return value;
}

template <typename T>
std::optional<std::vector<T>> Elements(const GgufFile& file, std::string_view key,
                                       std::string_view expected, Reading<T> read) {
  const auto entry = file.entries.find(key);
  if (entry == file.entries.end()) return std::nullopt;
  const auto* const array = std::get_if<GgufArray>(&entry->second);
  if (array == nullptr)
    FailType(file, key, fmt::format("an array of values, each {}", expected), entry->second);
  std::vector<T> out;
  out.reserve(array->count);
  GgufReader in(file.file.path(), array->bytes);
  for (uint64_t i = 0; i < array->count; ++i) {
    const GgufValue element = ReadGgufValue(in, array->type);
    const std::optional<T> value = read(element);
    if (!value) FailType(file, fmt::format("{}[{}]", key, i), expected, element);
    out.push_back(*value);
  }
  return out;
}

}  // namespace

const GgmlType* FindGgmlType(uint32_t id) {
  const auto* const found = std::ranges::find(kGgmlTypes, id, &GgmlType::id);
  return found == kGgmlTypes.end() ? nullptr : found;
}

std::optional<std::string_view> GgufFile::String(std::string_view key) const {
  return Scalar(*this, key, "a string", AsString);
}
std::optional<bool> GgufFile::Bool(std::string_view key) const {
  return Scalar(*this, key, "a bool", AsBool);
}
std::optional<uint64_t> GgufFile::Count(std::string_view key) const {
  return Scalar(*this, key, "an integer of at least 0", AsCount);
}
std::optional<double> GgufFile::Number(std::string_view key) const {
  return Scalar(*this, key, "a number", AsNumber);
}
std::optional<std::vector<std::string_view>> GgufFile::Strings(std::string_view key) const {
  return Elements(*this, key, "a string", AsString);
}
std::optional<std::vector<bool>> GgufFile::Bools(std::string_view key) const {
  return Elements(*this, key, "a bool", AsBool);
}
std::optional<std::vector<uint64_t>> GgufFile::Counts(std::string_view key) const {
  return Elements(*this, key, "an integer of at least 0", AsCount);
}
std::optional<std::vector<double>> GgufFile::Numbers(std::string_view key) const {
  return Elements(*this, key, "a number", AsNumber);
}

GgufFile GgufFile::Open(MappedFile file) {
  GgufFile out;
  out.file = std::move(file);
  const std::span<const std::byte> bytes = out.file.bytes();
  GgufReader in(out.file.path(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (in.Number<uint32_t>("the magic number") != kGgufMagic)
    in.Fail("not a GGUF file: wrong magic number");
  out.version = in.Number<uint32_t>("the version");
  if (out.version != 2 && out.version != 3) {
    const bool swapped = (out.version & 0xFFFF) == 0;
    in.Fail(swapped ? std::string("big-endian GGUF; expected little-endian")
                    : fmt::format("GGUF version is {}; expected 2 or 3", out.version));
  }
  const auto num_tensors = in.Number<uint64_t>("the number of tensors");
  const auto num_entries = in.Number<uint64_t>("the number of entries");
  if (num_tensors > kMaxTensors || num_entries > kMaxEntries) {
    in.Fail(fmt::format("the file has {} tensors and {} entries; expected at most {} and {}",
                        num_tensors, num_entries, kMaxTensors, kMaxEntries));
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
