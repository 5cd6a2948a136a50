// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the codecs in linalg/sphere_codec.h, one row at a time.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/sphere_codec.h"

namespace oscar {

template <typename T>
T RowNorm(std::span<const T> y);

// Writes codes [dim]; returns the norm, rounded to the rule's type. A value on a threshold belongs
// to the cell above it.
template <typename T>
T EncodeSphere(std::span<const T> y, const SphereRule& rule, std::span<uint8_t> codes);
template <typename T>
void DecodeSphere(std::span<const uint8_t> codes, T norm, const SphereRule& rule, std::span<T> y);

// The two numbers that prod stores in addition to the codes of its mse part.
template <typename T>
struct ProductNorms {
  T norm, residual;  // n and gamma, rounded to the rule's type
};

// s is [dim, dim], row-major, standard normal. signs is [dim]: 1 for values >= 0, else 0.
template <typename T>
ProductNorms<T> EncodeProduct(std::span<const T> y, const SphereRule& rule, std::span<const T> s,
                              std::span<uint8_t> codes, std::span<uint8_t> signs);
template <typename T>
void DecodeProduct(std::span<const uint8_t> codes, std::span<const uint8_t> signs,
                   const ProductNorms<T>& norms, const SphereRule& rule, std::span<const T> s,
                   std::span<T> y);

}  // namespace oscar
