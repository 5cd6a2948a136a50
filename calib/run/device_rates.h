// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures how fast a device does each kind of work in a calibration, in a fraction of a second
// each. The rates turn a plan's work into seconds. Trap: a calibration queues work on a GPU long
// before it runs, so the measurements do too. Code that waited after each product would measure the
// waiting.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace oscar {

struct DeviceRates {
  double model = 0;       // multiply-adds per second in the layers' products
  double statistics = 0;  // multiply-adds per second in outer products, summed in float64
  double scores = 0;      // multiply-adds per second in float32 products
  double elements = 0;    // float32 elements per second, read and written by elementwise functions
};

DeviceRates MeasureRates(c10::Device device, c10::ScalarType dtype);

// Returns the eigensolver's multiply-adds per second on all cores, estimated from a matrix product.
double MeasureHostRate();

}  // namespace oscar
