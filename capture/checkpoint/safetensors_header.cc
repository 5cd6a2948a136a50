// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kDataAlignment = 8;  // bytes; helps readers that map the file

// The file and tensor that errors name.
struct Place {
  std::string_view file;
  std::string_view tensor;
};

[[noreturn]] void Refuse(const Place& place, const std::string& why) {
  throw InputError(fmt::format("{}: tensor {}: {}", place.file, Quoted(place.tensor), why));
}

uint64_t LittleEndian64(std::span<const std::byte, kSafetensorsLengthBytes> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

// Returns the header text after checking its length against the file and the limit.
std::string_view HeaderText(std::span<const std::byte> file, std::string_view what) {
  if (file.size() < kSafetensorsLengthBytes) {
    throw InputError(fmt::format("{}: has {} bytes, but a safetensors file has at least {}", what,
                                 file.size(), kSafetensorsLengthBytes));
  }
  const uint64_t length = LittleEndian64(file.first<kSafetensorsLengthBytes>());
  if (length > kSafetensorsMaxHeaderBytes) {
    throw InputError(fmt::format(
        "{}: the header has {} bytes, expected at most {}; check that this is a safetensors file",
        what, length, kSafetensorsMaxHeaderBytes));
  }
  const uint64_t available = file.size() - kSafetensorsLengthBytes;
  if (length > available) {
    throw InputError(
        fmt::format("{}: the header has {} bytes, but only {} follow; the file is truncated", what,
                    length, available));
  }
  return {reinterpret_cast<const char*>(file.data()) + kSafetensorsLengthBytes, length};
}

// Accepts only numbers written as unsigned integers of at most 64 bits: not 2.0, not -0.
uint64_t Unsigned(const Json& value, const char* field, const Place& place) {
  if (!value.is_number_unsigned()) {
    const std::string shown = value.is_structured() ? value.type_name() : value.dump();
    Refuse(place,
           fmt::format("\"{}\" holds {}, expected unsigned integers", field, Escaped(shown, 80)));
  }
  return value.get<uint64_t>();
}

const Json& Field(const Json& entry, const char* field, Json::value_t type, const Place& place) {
  const auto it = entry.find(field);
  if (it == entry.end()) Refuse(place, fmt::format("\"{}\" is missing", field));
  if (it->type() != type) {
    Refuse(place, fmt::format("\"{}\" must be {}, found {}", field, Json(type).type_name(),
                              it->type_name()));
  }
  return *it;
}

DType ParseDType(const Json& entry, const Place& place) {
  const auto name = Field(entry, "dtype", Json::value_t::string, place).get<std::string>();
  const std::optional<DType> dtype = DTypeFromName(name);
  if (dtype) return *dtype;
  Refuse(place, fmt::format("element type {} is not one of the safetensors format", Quoted(name)));
}

std::vector<int64_t> ParseShape(const Json& entry, const Place& place) {
  const Json& dims = Field(entry, "shape", Json::value_t::array, place);
  if (dims.size() > kSafetensorsMaxRank) {
    Refuse(place,
           fmt::format("has {} dimensions, expected at most {}", dims.size(), kSafetensorsMaxRank));
  }
  std::vector<int64_t> shape;
  for (const Json& dim : dims) {
    const uint64_t value = Unsigned(dim, "shape", place);
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      Refuse(place, fmt::format("dimension {} exceeds a signed 64-bit integer", value));
    }
    shape.push_back(static_cast<int64_t>(value));
  }
  return shape;
}

// Parses one entry and checks its consistency; `data_begin` and `data_size` are bytes in the file.
TensorInfo ParseTensor(const Json& entry, uint64_t data_begin, uint64_t data_size,
                       const Place& place) {
  if (!entry.is_object())
    Refuse(place, fmt::format("must be an object, found {}", entry.type_name()));
  TensorInfo info;
  info.dtype = ParseDType(entry, place);
  info.shape = ParseShape(entry, place);
  const Json& offsets = Field(entry, "data_offsets", Json::value_t::array, place);
  if (offsets.size() != 2) {
    Refuse(place, fmt::format("\"data_offsets\" has {} numbers, expected 2", offsets.size()));
  }
  const uint64_t begin = Unsigned(offsets[0], "data_offsets", place);
  const uint64_t end = Unsigned(offsets[1], "data_offsets", place);
  if (begin > end) Refuse(place, fmt::format("begins at {}, after its end {}", begin, end));
  if (end > data_size) {
    Refuse(place, fmt::format("ends at data byte {}, but the file holds {}", end, data_size));
  }
  const std::optional<uint64_t> bytes = TensorBytes(info.dtype, info.shape);
  if (!bytes) {
    Refuse(place,
           fmt::format("{} [{}] overflows{}", DTypeName(info.dtype), fmt::join(info.shape, ", "),
                       DTypeBits(info.dtype) % 8 == 0 ? "" : ", or ends within a byte"));
  }
  if (*bytes != end - begin) {
    Refuse(place,
           fmt::format("{} [{}] needs {} bytes, but \"data_offsets\" give {}",
                       DTypeName(info.dtype), fmt::join(info.shape, ", "), *bytes, end - begin));
  }
  info.offset = data_begin + begin;
  info.size = end - begin;
  return info;
}

std::map<std::string, std::string> ParseMetadata(const Json& value, std::string_view what) {
  std::map<std::string, std::string> metadata;
  if (value.is_null()) return metadata;
  if (!value.is_object()) {
    throw InputError(
        fmt::format("{}: \"__metadata__\" must be an object, found {}", what, value.type_name()));
  }
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      throw InputError(fmt::format("{}: metadata {} must be a string, found {}", what, Quoted(key),
                                   text.type_name()));
    }
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

// Checks that every data byte belongs to exactly one tensor.
void CheckCoverage(const SafetensorsHeader& header, uint64_t data_begin, uint64_t file_size,
                   std::string_view what) {
  using Item = std::pair<const std::string, TensorInfo>;
  std::vector<const Item*> order;
  for (const Item& item : header.tensors) order.push_back(&item);
  std::ranges::sort(order, {}, [](const Item* item) {
    return std::pair(item->second.offset, item->second.size);  // empty tensors come before others
                                                               // at their offset
  });
  uint64_t expected = data_begin;
  for (const Item* item : order) {
    const TensorInfo& info = item->second;
    if (info.offset != expected) {
      Refuse({what, item->first},
             fmt::format("begins at data byte {}, but the tensors before it end at {}: {}",
                         info.offset - data_begin, expected - data_begin,
                         info.offset > expected ? "a gap" : "an overlap"));
    }
    expected += info.size;
  }
  if (expected != file_size) {
    throw InputError(fmt::format("{}: {} bytes after the last tensor belong to no tensor", what,
                                 file_size - expected));
  }
}

}  // namespace

std::optional<uint64_t> TensorBytes(DType dtype, std::span<const int64_t> shape) {
  const int64_t bits = DTypeBits(dtype);
  int64_t product = bits % 8 == 0 ? bits / 8 : bits;  // in bytes if these are whole, otherwise bits
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    empty = empty || dim == 0;
    if (dim != 0 && __builtin_mul_overflow(product, dim, &product)) return std::nullopt;
  }
  if (empty) return 0;
  if (bits % 8 == 0) return static_cast<uint64_t>(product);
  return product % 8 == 0 ? std::optional(static_cast<uint64_t>(product) / 8) : std::nullopt;
}

SafetensorsHeader ParseSafetensorsHeader(std::span<const std::byte> file, std::string_view what) {
  const std::string_view text = HeaderText(file, what);
  const uint64_t data_begin = kSafetensorsLengthBytes + text.size();
  const JsonLimits limits = {
      .max_depth = 64, .max_bytes = kSafetensorsMaxHeaderBytes, .max_values = 4'000'000};
  const Json json = ParseStrictJson(text, fmt::format("{} (header)", what), limits);
  if (!json.is_object()) {
    throw InputError(
        fmt::format("{}: the header must be an object, found {}", what, json.type_name()));
  }
  if (json.size() > kSafetensorsMaxTensors) {
    throw InputError(fmt::format("{}: has {} entries, expected at most {}", what, json.size(),
                                 kSafetensorsMaxTensors));
  }
  SafetensorsHeader header;
  for (const auto& [name, entry] : json.items()) {
    if (name == kSafetensorsMetadataKey) {
      header.metadata = ParseMetadata(entry, what);
      continue;
    }
    const Place place{what, name};
    if (name.find('\0') != name.npos) Refuse(place, "a NUL in the name");
    header.tensors.emplace(name, ParseTensor(entry, data_begin, file.size() - data_begin, place));
  }
  CheckCoverage(header, data_begin, file.size(), what);
  return header;
}

std::string EncodeSafetensorsHeader(const std::vector<SafetensorsWriter::Declaration>& tensors,
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
    const std::optional<uint64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
    OSCAR_CHECK(bytes.has_value());
    const uint64_t end = offset + *bytes;
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

}  // namespace oscar
