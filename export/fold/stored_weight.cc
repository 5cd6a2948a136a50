// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/fold/stored_weight.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "capture/checkpoint/stored_values.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/stored_float.h"

namespace oscar {
namespace {

// Returns the bits of a float16 number. `x` must come from RoundToFloat16.
uint16_t FloatToHalf(float x) {
  const auto sign = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16 & 0x8000U);
  const float magnitude = std::abs(x);
  if (magnitude < 0x1p-14F) {
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(magnitude * 0x1p24F));
  }
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  return static_cast<uint16_t>(sign | ((bits >> 13) - ((127U - 15U) << 10)));
}

void Encode(float value, DType dtype, std::byte* at) {
  if (dtype == DType::kF32) {
    std::memcpy(at, &value, sizeof(value));
    return;
  }
  const uint16_t bits =
      dtype == DType::kF16
          ? FloatToHalf(RoundToFloat16(value))
          : static_cast<uint16_t>(std::bit_cast<uint32_t>(RoundToBFloat16(value)) >> 16);
  std::memcpy(at, &bits, sizeof(bits));
}

double Largest(DType dtype) {
  if (dtype == DType::kF16) return static_cast<double>(kMaxFloat16);
  if (dtype == DType::kBF16) return static_cast<double>(kMaxBFloat16);
  return static_cast<double>(std::numeric_limits<float>::max());
}

}  // namespace

WeightMatrix ReadWeight(const TensorView& view, std::string_view name) {
  const bool known =
      view.dtype == DType::kBF16 || view.dtype == DType::kF16 || view.dtype == DType::kF32;
  if (!known || view.shape.empty() || view.shape.size() > 2) {
    throw InputError(
        fmt::format("{}: expected a weight with one or two dimensions and type BF16, F16 or F32, "
                    "found {} dimension(s) of type {}",
                    name, view.shape.size(), DTypeName(view.dtype)));
  }
  WeightMatrix weight(view.shape[0], view.shape.size() == 2 ? view.shape[1] : 1);
  const std::byte* at = view.data.data();
  for (double& value : weight.reshaped<Eigen::RowMajor>()) {
    value = static_cast<double>(LoadFloat(view.dtype, at));
    at += DTypeBytes(view.dtype);
  }
  return weight;
}

std::vector<std::byte> StoredWeight(const WeightMatrix& weight, DType dtype,
                                    std::string_view name) {
  std::vector<std::byte> bytes(static_cast<size_t>(weight.size() * DTypeBytes(dtype)));
  const double largest = Largest(dtype);
  std::byte* at = bytes.data();
  for (const double value : weight.reshaped<Eigen::RowMajor>()) {
    if (!(std::abs(value) <= largest)) {
      throw NumericalError(fmt::format("{}: a value becomes {:g}, which exceeds the range of {}",
                                       name, value, DTypeName(dtype)));
    }
    Encode(static_cast<float>(value), dtype, at);
    at += DTypeBytes(dtype);
  }
  return bytes;
}

}  // namespace oscar
