// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A scalar reference for what stored weights mean, and a check that loaded weights equal it: whole
// and in part, bit for bit, and rounded once to float16; on the CPU, and on a GPU if there is one.
// All random values come from one generator, so each case depends on the cases before it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/capture/checkpoint/stored_weights.h"

namespace oscar {

using Ints = std::vector<int>;
using Floats = std::vector<float>;

inline constexpr const char* kWeight = "m.weight";

Ints RandomInts(int64_t count, int low, int high);
Ints RandomOrder(int64_t count);  // permutation of 0 .. count - 1

// Return the value that the stored bits represent.
float FromE4m3(int bits);
float FromE2m1(int bits);

// Adds random scales of type `dtype`. Returns their values.
Floats AddScales(StoredWeights& stored, const std::string& name, std::vector<int64_t> shape,
                 DType dtype);

// Returns a matrix whose values are given by row and column.
Floats Dense(int64_t rows, int64_t columns,
             const std::function<float(size_t row, size_t column)>& value);

// Expects m.weight to load as `expected`, bit for bit; whole, in part, and rounded to float16.
void ExpectLoads(const StoredWeights& stored, const std::vector<int64_t>& shape,
                 const Floats& expected, const std::string& what);

}  // namespace oscar
