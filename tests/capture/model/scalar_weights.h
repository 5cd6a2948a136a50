// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A scalar second implementation of what stored weights mean, and the check that a loaded weight is
// exactly that: whole, in part, and in float16 one rounding away; on the CPU, and on a GPU if there
// is one. Random values come from one generator, so a case depends on those before it.
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
Ints RandomOrder(int64_t count);  // of 0 .. count - 1

// Return the value that the stored bits represent.
float FromE4m3(int bits);
float FromE2m1(int bits);

// Adds scales of that type, of random values; returns them.
Floats AddScales(StoredWeights& stored, const std::string& name, std::vector<int64_t> shape,
                 DType dtype);

// Values by row and column.
Floats Dense(int64_t rows, int64_t columns,
             const std::function<float(size_t row, size_t column)>& value);

// m.weight loads as `expected`, bit for bit.
void ExpectLoads(const StoredWeights& stored, const std::vector<int64_t>& shape,
                 const Floats& expected, const std::string& what);

}  // namespace oscar
