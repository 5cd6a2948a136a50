// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How fast a device does what a calibration consists of, from a fraction of a second of each: the
// numbers that turn a plan's work into seconds. Trap: a GPU is told of work long before it does it,
// in a calibration as here; who waits after each product measures the waiting.
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

// Of this machine's eigensolver, all cores: multiply-adds as a product of matrices would need them.
double MeasureHostRate();

}  // namespace oscar
