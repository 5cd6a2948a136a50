// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks what the pickle says about tensors against the archive's records. Sizes are multiplied
// with overflow checks and compared with the records before anything is allocated.
#include "export/formats/pt/pt_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>

#include "capture/checkpoint/stored_values.h"  // HalfToFloat
#include "capture/files/quote.h"
#include "export/formats/pt/zip_format.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

static_assert(std::endian::native == std::endian::little, "storages are read in place");

constexpr uint64_t kExpansion = 16;                      // allowed tensor bytes per byte of file
constexpr uint64_t kSmallExpansion = uint64_t{1} << 20;  // bytes that are always allowed
constexpr int kMaxArchiveVersion = 10;

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void CheckArchive(const ZipReader& archive) {
  const auto fail = [&](std::string_view record, std::string_view expected,
                        std::string_view found) {
    throw InputError(
        fmt::format("{}: record '{}' should be {}, found '{}'; save the file again "
                    "with a current torch on a little-endian machine",
                    archive.path().string(), record, expected, Escaped(found)));
  };
  std::string_view version = TextOf(archive.record("version"));
  if (version.ends_with('\n')) version.remove_suffix(1);
  const bool digits = !version.empty() && version.size() <= 2 &&
                      version.find_first_not_of("0123456789") == std::string_view::npos;
  const int number = digits ? std::stoi(std::string(version)) : 0;
  if (number < 1 || number > kMaxArchiveVersion) {
    fail("version", fmt::format("a number from 1 to {}", kMaxArchiveVersion), version);
  }
  const auto byteorder = archive.Find("byteorder");
  if (byteorder && TextOf(*byteorder) != "little") {
    fail("byteorder", "'little'", TextOf(*byteorder));
  }
}

// Returns the number of elements, or nothing if it overflows 64 bits.
std::optional<int64_t> CheckedCount(const std::vector<int64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  return count;
}

bool IsContiguous(const PtTensor& tensor) {
  int64_t stride = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != stride) return false;
    stride *= tensor.shape[d];
  }
  return true;
}

// Calls visit(index) for each element in logical row-major order; index is its position in the
// storage.
template <typename Visit>
void ForEachElement(const PtTensor& tensor, Visit visit) {
  const int64_t count = PtFile::Count(tensor);
  const size_t rank = tensor.shape.size();
  std::vector<int64_t> position(rank, 0);
  int64_t at = static_cast<int64_t>(tensor.offset);
  for (int64_t i = 0; i < count; ++i) {
    visit(at);
    for (size_t d = rank; d-- > 0;) {
      at += tensor.strides[d];
      if (++position[d] < tensor.shape[d]) break;
      at -= tensor.strides[d] * tensor.shape[d];
      position[d] = 0;
    }
  }
}

template <typename T>
T LoadAs(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename Out>
std::vector<Out> Convert(const PtFile& file, const PtTensor& tensor, std::string_view what) {
  const std::byte* data = file.archive().record("data/" + tensor.storage).data();
  std::vector<Out> values;
  values.reserve(static_cast<size_t>(PtFile::Count(tensor)));
  switch (tensor.dtype) {
    case DType::kF32:
      ForEachElement(
          tensor, [&](int64_t i) { values.push_back(static_cast<Out>(LoadAs<float>(data, i))); });
      break;
    case DType::kF64:
      ForEachElement(
          tensor, [&](int64_t i) { values.push_back(static_cast<Out>(LoadAs<double>(data, i))); });
      break;
    case DType::kBF16:
      ForEachElement(tensor, [&](int64_t i) {
        const uint32_t bits = static_cast<uint32_t>(LoadAs<uint16_t>(data, i)) << 16;
        values.push_back(static_cast<Out>(std::bit_cast<float>(bits)));
      });
      break;
    case DType::kF16:
      ForEachElement(tensor, [&](int64_t i) {
        values.push_back(static_cast<Out>(HalfToFloat(LoadAs<uint16_t>(data, i))));
      });
      break;
    default:
      throw InputError(
          fmt::format("{}: {} has dtype {}, expected float32, float64, float16 or "
                      "bfloat16",
                      file.path().string(), what, TorchDTypeName(tensor.dtype)));
  }
  return values;
}

}  // namespace

PtFile PtFile::Open(MappedFile bytes) {
  PtFile file;
  file.archive_ = ZipReader::Open(std::move(bytes));
  CheckArchive(file.archive_);
  PickleResult pickle = ReadPickle(file.archive_.record("data.pkl"), file.path().string());
  file.tree_ = std::move(pickle.tree);
  file.globals_ = std::move(pickle.globals);
  file.CheckTensors();
  return file;
}

void PtFile::CheckTensors() const {
  const uint64_t budget = std::max(kSmallExpansion, kExpansion * archive_.file_size());
  uint64_t expanded = 0;
  std::map<std::string, std::pair<DType, uint64_t>> storages;  // key to dtype and element count
  std::set<std::string> seen;                                  // views that were already counted
  for (const PtValue& value : tree_.values) {
    const auto* tensor = value.If<PtTensor>();
    if (tensor == nullptr) continue;
    const auto fail = [&](const std::string& why) {
      throw InputError(fmt::format(
          "{}: tensor of shape [{}], strides [{}], offset {} in record 'data/{}': {}; the file is "
          "damaged or was not written by torch.save",
          path().string(), fmt::join(tensor->shape, ", "), fmt::join(tensor->strides, ", "),
          tensor->offset, tensor->storage, why));
    };
    const auto record = archive_.Find("data/" + tensor->storage);
    if (!record) fail("there is no such record");
    const uint64_t item = static_cast<uint64_t>(DTypeBytes(tensor->dtype));
    if (tensor->storage_numel > record->size() || tensor->storage_numel * item != record->size()) {
      fail(fmt::format("the storage claims {} elements of {} bytes, but the record holds {} bytes",
                       tensor->storage_numel, item, record->size()));
    }
    const auto claim = std::make_pair(tensor->dtype, tensor->storage_numel);
    if (storages.emplace(tensor->storage, claim).first->second != claim) {
      fail("the storage is used with two dtypes");
    }
    const auto count = CheckedCount(tensor->shape);
    if (!count) fail("the element count overflows");
    int64_t last = static_cast<int64_t>(tensor->offset);  // the loop moves it to the last element
    bool overflow = false;
    for (size_t d = 0; *count > 0 && d < tensor->shape.size(); ++d) {
      int64_t step = 0;
      overflow |= __builtin_mul_overflow(tensor->shape[d] - 1, tensor->strides[d], &step);
      overflow |= __builtin_add_overflow(last, step, &last);
      // ForEachElement adds the last stride of a dimension before it goes back to the first
      // element.
      overflow |= __builtin_mul_overflow(tensor->shape[d], tensor->strides[d], &step);
      overflow |= step > int64_t{1} << 62;
    }
    const uint64_t end = static_cast<uint64_t>(last) + (*count > 0 ? 1 : 0);
    if (overflow || end > tensor->storage_numel) {
      fail(fmt::format("it extends beyond the storage of {} elements", tensor->storage_numel));
    }
    const std::string view =
        fmt::format("{}|{}|{}|{}", tensor->storage, tensor->offset, fmt::join(tensor->shape, ","),
                    fmt::join(tensor->strides, ","));
    if (!seen.insert(view).second) continue;
    const uint64_t room = (budget - expanded) / item;
    if (static_cast<uint64_t>(*count) > room) {
      fail(fmt::format("all tensors together are more than {} times as large as the file",
                       kExpansion));
    }
    expanded += static_cast<uint64_t>(*count) * item;
  }
}

int64_t PtFile::Count(const PtTensor& tensor) {
  const auto count = CheckedCount(tensor.shape);
  OSCAR_CHECK(count.has_value());
  return *count;
}

std::vector<std::byte> PtFile::RawBytes(const PtTensor& tensor) const {
  const auto record = archive_.record("data/" + tensor.storage);
  const size_t item = static_cast<size_t>(DTypeBytes(tensor.dtype));
  if (Count(tensor) > 0 && IsContiguous(tensor)) {
    const auto view =
        record.subspan(tensor.offset * item, static_cast<size_t>(Count(tensor)) * item);
    return {view.begin(), view.end()};
  }
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(Count(tensor)) * item);
  ForEachElement(tensor, [&](int64_t i) {
    const auto element = record.subspan(static_cast<size_t>(i) * item, item);
    bytes.insert(bytes.end(), element.begin(), element.end());
  });
  return bytes;
}

std::vector<float> PtFile::Floats(const PtTensor& tensor, std::string_view what) const {
  return Convert<float>(*this, tensor, what);
}

std::vector<double> PtFile::Doubles(const PtTensor& tensor, std::string_view what) const {
  return Convert<double>(*this, tensor, what);
}

}  // namespace oscar
