// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/dump/attention_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Limits on what a dump may declare. They are far above the values of any real model, and the
// product of any two fits in 64 bits.
constexpr int64_t kMaxHeads = 1 << 16, kMaxDim = 1 << 16, kMaxLayerId = 1 << 20;

// A value whose exponent bits are all ones is NaN or infinite.
template <typename T>
std::optional<size_t> FirstWithExponent(std::span<const std::byte> values, T exponent) {
  for (size_t i = 0; i < values.size() / sizeof(T); ++i) {
    T bits;
    std::memcpy(&bits, values.data() + i * sizeof(T), sizeof(T));
    if ((bits & exponent) == exponent) return i;
  }
  return std::nullopt;
}

}  // namespace

std::string_view DumpTensorName(DumpTensor tensor) {
  constexpr std::array<std::string_view, 6> kNames = {"q", "k", "v", "attn_out", "c_kv", "k_pe"};
  return kNames.at(static_cast<size_t>(tensor));
}

std::vector<DumpTensor> DumpLayer::tensors() const {
  std::vector<DumpTensor> all(kDumpTensors.begin(), kDumpTensors.end());
  if (latent()) all.insert(all.end(), {DumpTensor::kCKv, DumpTensor::kKPe});
  return all;
}

std::vector<int64_t> DumpLayer::shape(DumpTensor tensor, int64_t num_tokens) const {
  if (tensor == DumpTensor::kCKv || tensor == DumpTensor::kKPe) return {num_tokens, dim(tensor)};
  return {num_tokens, heads(tensor), dim(tensor)};
}

int64_t DumpLayer::heads(DumpTensor tensor) const {
  if (tensor == DumpTensor::kCKv || tensor == DumpTensor::kKPe) return 1;
  return tensor == DumpTensor::kQ || tensor == DumpTensor::kAttnOut ? num_q_heads : num_kv_heads;
}

int64_t DumpLayer::dim(DumpTensor tensor) const {
  if (tensor == DumpTensor::kCKv) return latent_rank;
  if (tensor == DumpTensor::kKPe) return rope_dim;
  return tensor == DumpTensor::kQ || tensor == DumpTensor::kK ? head_dim : v_head_dim;
}

int64_t DumpLayer::row_bytes(DumpTensor tensor) const {
  return heads(tensor) * dim(tensor) * DTypeBytes(dtype);
}

std::vector<int64_t> DumpLayer::kv_b_shape() const {
  return {num_q_heads, head_dim - rope_dim + v_head_dim, latent_rank};
}

int64_t DumpLayer::kv_b_bytes() const {
  return num_q_heads * (head_dim - rope_dim + v_head_dim) * latent_rank * DTypeBytes(dtype);
}

DumpLayer DumpLayer::Reader(const CacheReader& reader) const {
  DumpLayer own = *this;
  own.layer_id = reader.layer_id;
  own.num_q_heads = reader.num_q_heads;
  own.readers.clear();
  return own;
}

void AttentionDump::ReadReaderRows(size_t, size_t, DumpTensor, int64_t,
                                   std::span<std::byte>) const {
  OSCAR_CHECK(!"a dump whose layers have readers");
}

void AttentionDump::ReadKvB(size_t, std::span<std::byte>) const {
  OSCAR_CHECK(!"a dump of latent attention");
}

void CheckDumpLayer(const DumpLayer& layer, const std::string& what) {
  const auto check = [&](std::string_view name, int64_t value, int64_t max) {
    if (value < 1 || value > max) {
      throw InputError(fmt::format("{}: {} is {}, expected 1 to {}", what, name, value, max));
    }
  };
  if (layer.layer_id < 0 || layer.layer_id > kMaxLayerId) {
    throw InputError(
        fmt::format("{}: layer id {}, expected 0 to {}", what, layer.layer_id, kMaxLayerId));
  }
  check("num_q_heads", layer.num_q_heads, kMaxHeads);
  check("num_kv_heads", layer.num_kv_heads, kMaxHeads);
  check("head_dim", layer.head_dim, kMaxDim);
  check("v_head_dim", layer.v_head_dim, kMaxDim);
  if (layer.num_q_heads % layer.num_kv_heads != 0) {
    throw InputError(fmt::format("{}: {} query heads are not a multiple of {} KV heads", what,
                                 layer.num_q_heads, layer.num_kv_heads));
  }
  if (!std::isfinite(layer.scale) || layer.scale <= 0) {
    throw InputError(fmt::format("{}: scale is {}, expected a number above 0", what, layer.scale));
  }
  if (!std::isfinite(layer.softcap) || layer.softcap < 0) {
    throw InputError(fmt::format("{}: softcap is {}, expected 0 (none) or a number above 0", what,
                                 layer.softcap));
  }
  const bool finite = std::ranges::all_of(layer.sinks, [](float x) { return std::isfinite(x); });
  if (!layer.sinks.empty() && (std::ssize(layer.sinks) != layer.num_q_heads || !finite)) {
    throw InputError(
        fmt::format("{}: {} sinks, expected {} finite numbers, one for each query head", what,
                    layer.sinks.size(), layer.num_q_heads));
  }
  if (layer.latent_rank != 0 || layer.rope_dim != 0) {
    check("latent_rank", layer.latent_rank, kMaxDim);
    check("rope_dim", layer.rope_dim, layer.head_dim);
  }
  for (const CacheReader& reader : layer.readers) {
    check("num_q_heads of a reader", reader.num_q_heads, kMaxHeads);
    if (reader.num_q_heads % layer.num_kv_heads != 0) {
      throw InputError(fmt::format(
          "{}: layer {} reads {} KV heads with {} query heads, expected a multiple of the KV heads",
          what, reader.layer_id, layer.num_kv_heads, reader.num_q_heads));
    }
  }
  if (layer.window && *layer.window < 1) {
    throw InputError(
        fmt::format("{}: the window has {} tokens, expected at least 1", what, *layer.window));
  }
  if (layer.dtype != DType::kBF16 && layer.dtype != DType::kF16 && layer.dtype != DType::kF32) {
    throw InputError(
        fmt::format("{}: has {} values, expected BF16, F16 or F32", what, DTypeName(layer.dtype)));
  }
}

std::optional<size_t> FirstNotFinite(DType dtype, std::span<const std::byte> values) {
  switch (dtype) {
    case DType::kBF16:
      return FirstWithExponent<uint16_t>(values, 0x7f80);
    case DType::kF16:
      return FirstWithExponent<uint16_t>(values, 0x7c00);
    case DType::kF32:
      return FirstWithExponent<uint32_t>(values, 0x7f800000);
    default:
      OSCAR_CHECK(false);
  }
  return std::nullopt;
}

}  // namespace oscar
