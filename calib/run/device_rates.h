// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures how fast a device does each kind of work in a calibration, in a fraction of a second
// each. The rates turn a plan's work into seconds. Trap: a GPU is given work long before it does
// it, in a calibration as here; code that waits after each product measures the waiting.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace oscar {

struct DeviceRates {
  double model = 0;       // multiply-adds a second of the layers' own products
  double statistics = 0;  // of sums of outer products in float64, from rows of the compute dtype
  double scores = 0;      // of float32 products
  double elements = 0;    // that are read and written by functions of one float32 each
};

DeviceRates MeasureRates(c10::Device device, c10::ScalarType dtype);

// Measures the eigensolver on all cores, in the multiply-adds a second of an equal matrix product.
double MeasureHostRate();

}  // namespace oscar
