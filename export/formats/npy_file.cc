// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Files are untrusted. The header is matched against a pattern and never evaluated. Its numbers are
// compared with the file's size before any allocation.
#include "export/formats/npy_file.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>
#include <regex>
#include <span>
#include <string>
#include <string_view>

#include "capture/checkpoint/stored_values.h"
#include "capture/files/mapped_file.h"
#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLongestHeader = 4096;  // bytes; a usual header has about a hundred
constexpr size_t kMaxRank = 8;

struct Header {
  std::string text;
  size_t end = 0;  // bytes from the start of the file
};

Header HeaderOf(std::span<const std::byte> bytes, const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto byte = [&](size_t at) { return std::to_integer<size_t>(bytes[at]); };
  if (!text.starts_with(kMagic) || text.size() < 12)
    throw InputError(path + ": is not a file written by numpy.save");
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    throw InputError(fmt::format("{}: .npy version {}, expected 1, 2 or 3", path, version));
  const size_t begin = version == 1 ? 10 : 12;
  const size_t length =
      byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > kLongestHeader || begin + length > text.size())
    throw InputError(fmt::format("{}: the header needs {} bytes, but the file has {}", path, length,
                                 text.size()));
  return {std::string(text.substr(begin, length)), begin + length};
}

DType DTypeOf(const std::string& descr, const std::string& path) {
  if (descr == "<f2") return DType::kF16;
  if (descr == "<f4") return DType::kF32;
  if (descr == "<f8") return DType::kF64;
  throw InputError(fmt::format(
      "{}: values of type {}, expected little-endian float16, float32 or float64 (<f2, <f4, <f8)",
      path, Quoted(descr)));
}

std::vector<int64_t> ShapeOf(const std::string& text, const std::string& path) {
  static const std::regex kNumber("[0-9]+");
  std::vector<int64_t> shape;
  for (std::sregex_iterator it(text.begin(), text.end(), kNumber), end; it != end; ++it) {
    if (it->length() > 9 || shape.size() == kMaxRank)
      throw InputError(fmt::format("{}: shape ({}) is larger than any file", path, text));
    shape.push_back(std::stoll(it->str()));
  }
  return shape;
}

float ValueAt(const std::byte* at, DType dtype) {
  if (dtype != DType::kF64) return LoadFloat(dtype, at);
  double value = 0;
  std::memcpy(&value, at, sizeof(value));
  return static_cast<float>(value);
}

}  // namespace

NpyFile ReadNpyFile(const MappedFile& file) {
  static const std::regex kHeader(
      R"(^\{'descr': '([^']{1,16})', 'fortran_order': (True|False), 'shape': \((|[0-9]+,|[0-9]+(?:, ?[0-9]+)+,?)\), ?\}\s*$)");
  static_assert(std::endian::native == std::endian::little);
  const std::string name = file.path().string();
  const Header header = HeaderOf(file.bytes(), name);
  std::smatch parts;
  if (!std::regex_match(header.text, parts, kHeader)) {
    throw InputError(fmt::format(
        "{}: header {}, expected descr, fortran_order and shape of one array, as numpy.save writes "
        "them",
        name, Quoted(header.text)));
  }
  if (parts[2] == "True") {
    throw InputError(name +
                     ": the array is stored in column order (fortran_order); save "
                     "numpy.ascontiguousarray(array) instead");
  }
  NpyFile out{DTypeOf(parts[1], name), ShapeOf(parts[3], name), {}};
  const size_t size = static_cast<size_t>(DTypeBytes(out.dtype));
  const size_t bytes = file.bytes().size() - header.end;
  size_t count = 1;
  for (const int64_t dim : out.shape) {
    if (dim == 0 || count > bytes / static_cast<size_t>(dim)) {
      count = 0;
      break;
    }
    count *= static_cast<size_t>(dim);
  }
  if (count == 0 || count * size != bytes) {
    throw InputError(
        fmt::format("{}: shape ({}) with {} bytes per value does not match {} bytes of values",
                    name, parts[3].str(), size, bytes));
  }
  out.values.resize(count);
  for (size_t i = 0; i < count; ++i)
    out.values[i] = ValueAt(file.bytes().data() + header.end + i * size, out.dtype);
  return out;
}

}  // namespace oscar
