// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/quantized_rows.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "capture/dump/dump_format.h"
#include "capture/dump/hdf5_file.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/guest_methods.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr const char* kBitsPerElement = "bits_per_element";  // attribute of the root
constexpr double kMostBits = 64;

class RowsOfFile {
 public:
  RowsOfFile(const std::filesystem::path& path, const AttentionDump& dump)
      : file_(path), layers_(dump.layers()), lengths_(dump.sequence_lengths()) {
    for (const int64_t length : lengths_) first_tokens_.push_back(first_tokens_.back() + length);
    CheckTokens(dump);
    for (const DumpLayer& layer : layers_) {
      if (layer.latent()) {
        CheckDataset(layer, DumpTensor::kCKv);
      } else {
        CheckDataset(layer, DumpTensor::kK);
        CheckDataset(layer, DumpTensor::kV);
      }
    }
    bits_ = file_.DoubleAttribute("/", kBitsPerElement);
    if (!(bits_ > 0 && bits_ <= kMostBits))
      Refuse("/", fmt::format("{} is {}, expected a number above 0 and up to {}", kBitsPerElement,
                              bits_, kMostBits));
  }

  double bits_per_element() const { return bits_; }

  // Returns the stored rows of the sequence of `exact`, on its device.
  CacheSides Read(size_t layer_index, const CacheSides& exact) const {
    if (!layers_[layer_index].latent()) {
      return {ReadSide(layer_index, DumpTensor::kK, exact.sequence, exact.k),
              ReadSide(layer_index, DumpTensor::kV, exact.sequence, exact.v)};
    }
    const at::Tensor rows = ReadSide(layer_index, DumpTensor::kCKv, exact.sequence, exact.k);
    return {rows, rows};
  }

 private:
  [[noreturn]] void Refuse(std::string_view object, const std::string& why) const {
    throw InputError(fmt::format("{}: {}: {}", file_.path().string(), object, why));
  }

  void CheckTokens(const AttentionDump& dump) const {
    const std::span<const int32_t> expected = dump.token_ids();
    if (expected.empty()) {
      throw InputError(
          fmt::format("{}: stores no token ids, so it cannot be checked whether {} belongs to the "
                      "same text; capture the dump with oscar-capture as HDF5",
                      dump.name(), file_.path().string()));
    }
    const std::vector<int32_t> ids =
        file_.Read<int32_t>(dump_format::kInputIds, {std::ssize(expected)});
    const auto other = std::ranges::mismatch(ids, expected);
    if (other.in1 != ids.end()) {
      Refuse(fmt::format("/{}", dump_format::kInputIds),
             fmt::format("token {} is {}, but {} in {}; quantize the rows of that dump",
                         other.in1 - ids.begin(), *other.in1, *other.in2, dump.name()));
    }
  }

  void CheckDataset(const DumpLayer& layer, DumpTensor tensor) const {
    const std::string name = NameOf(layer, tensor);
    const Hdf5DatasetInfo& info = file_.dataset(name);
    const Hdf5Shape expected = layer.shape(tensor, first_tokens_.back());
    if (info.shape != expected) {
      Refuse(name, fmt::format("expected [{}], as in the dump, found [{}]",
                               fmt::join(expected, ", "), fmt::join(info.shape, ", ")));
    }
    const bool floats = info.type == Hdf5Type::kFloat64 || info.type == Hdf5Type::kFloat32 ||
                        info.type == Hdf5Type::kFloat16;
    const bool bf16 = info.type == Hdf5Type::kUInt16 &&
                      file_.HasAttribute(name, dump_format::kDtype) &&
                      file_.StringAttribute(name, dump_format::kDtype) == dump_format::kDtypeBf16;
    if (!floats && !bf16) {
      Refuse(name,
             fmt::format("{} values, expected float64, float32, float16, or bfloat16 as "
                         "uint16 with the attribute {} = \"{}\"",
                         Hdf5TypeName(info.type), dump_format::kDtype, dump_format::kDtypeBf16));
    }
  }

  static std::string NameOf(const DumpLayer& layer, DumpTensor tensor) {
    return dump_format::LayerPath(layer.layer_id, DumpTensorName(tensor));
  }

  // Returns [tokens of the sequence, heads, dim] in the ResultType of `exact`.
  at::Tensor ReadSide(size_t layer_index, DumpTensor tensor, int64_t sequence,
                      const at::Tensor& exact) const {
    const DumpLayer& layer = layers_[layer_index];
    const std::string name = NameOf(layer, tensor);
    const Hdf5DatasetInfo& info = file_.dataset(name);
    const int64_t first = first_tokens_.at(static_cast<size_t>(sequence));
    const auto read = [&]<typename T>(T, at::ScalarType type) {
      at::Tensor rows = at::empty(
          {lengths_.at(static_cast<size_t>(sequence)), layer.heads(tensor), layer.dim(tensor)},
          type);
      file_.ReadRows<T>(name, info.shape, first,
                        {static_cast<T*>(rows.data_ptr()), static_cast<size_t>(rows.numel())});
      return rows;
    };
    const at::Tensor stored = info.type == Hdf5Type::kFloat64   ? read(double{}, at::kDouble)
                              : info.type == Hdf5Type::kFloat32 ? read(float{}, at::kFloat)
                              : info.type == Hdf5Type::kFloat16 ? read(Float16{}, at::kHalf)
                                                                : read(uint16_t{}, at::kBFloat16);
    const at::Tensor rows = stored.to(ResultType(exact));
    const at::Tensor bad = rows.isfinite().logical_not().nonzero();  // [values, 3]
    if (bad.size(0) > 0) {
      const auto index = [&](int64_t i) { return bad[0][i].item<int64_t>(); };
      Refuse(name, fmt::format("token {}, head {}, dimension {} is NaN or infinite",
                               first + index(0), index(1), index(2)));
    }
    return rows.to(exact.device());
  }

  Hdf5Reader file_;
  std::vector<DumpLayer> layers_;
  std::vector<int64_t> lengths_;             // length of each sequence, in tokens
  std::vector<int64_t> first_tokens_ = {0};  // per sequence; the last is the total
  double bits_ = 0;
};

}  // namespace

std::shared_ptr<const CacheMethod> QuantizedMethod(const std::string& name,
                                                   const std::filesystem::path& path,
                                                   const AttentionDump& dump) {
  const auto rows = std::make_shared<const RowsOfFile>(path, dump);
  CacheMethod method;
  method.takes_clip = false;
  method.make = [rows](const MethodContext& context, size_t layer_index,
                       const ArmOptions& options) {
    LayerCache cache;
    cache.store = [rows, layer_index](const CacheSides& exact) {
      return CachedRows{rows->Read(layer_index, exact)};
    };
    cache.k_exact = cache.v_exact = ArmWindows(context, options);
    return cache;
  };
  method.cost =
      AffineCost({.bits = rows->bits_per_element(), .metadata_bits = 0, .actual_metadata_bits = 0});
  return NamedMethod(
      name, fmt::format("rows that another program read back: {}", path.filename().string()),
      std::move(method));
}

}  // namespace oscar
