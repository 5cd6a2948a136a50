// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/device_rates.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>

namespace oscar {
namespace {

// Returns the seconds that one call of `pass` takes on the device.
template <typename Function>
double SecondsOf(at::Device device, const Function& pass) {
  constexpr double kEnough = 0.03;  // seconds
  const int in_a_row = device.is_cpu() ? 1 : 8;
  const auto wait = [&] {
    if (device.is_cpu()) return;
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeStream(guard.getStream(device));
  };
  pass();
  wait();
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  int passes = 0;
  while (seconds < kEnough) {
    for (int i = 0; i < in_a_row; ++i) pass();
    wait();
    passes += in_a_row;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return seconds / passes;
}

double ProductRate(at::Device device, at::ScalarType dtype, int64_t rows, int64_t dim) {
  const auto options = at::TensorOptions().device(device).dtype(dtype);
  const at::Tensor x = at::ones({rows, dim}, options), w = at::ones({dim, dim}, options);
  return static_cast<double>(rows * dim * dim) / SecondsOf(device, [&] { (void)x.matmul(w); });
}

// Adds a chunk in the same way as StatisticsObserver.
double StatisticsRate(at::Device device, at::ScalarType dtype) {
  const int64_t tokens = device.is_cpu() ? 256 : 1024, kv = 8, ratio = 4, dim = 128;
  const at::Tensor x =
      at::ones({tokens, kv, ratio, dim}, at::TensorOptions().device(device).dtype(dtype));
  at::Tensor sum = at::zeros({kv, dim, dim}, at::TensorOptions().device(device).dtype(at::kDouble));
  const double seconds = SecondsOf(device, [&] {
    const at::Tensor rows = at::empty({kv, tokens, ratio, dim}, sum.options());
    rows.copy_(x.permute({1, 0, 2, 3}));
    const at::Tensor of_head = rows.view({kv, tokens * ratio, dim});
    at::baddbmm_out(sum, sum, of_head.transpose(1, 2), of_head);
  });
  return static_cast<double>(tokens * kv * ratio * dim * dim) / seconds;
}

double ElementRate(at::Device device) {
  const int64_t values = int64_t{1} << (device.is_cpu() ? 20 : 25);
  at::Tensor x = at::zeros({values}, at::TensorOptions().device(device));
  return 2 * static_cast<double>(values) / SecondsOf(device, [&] { x.mul_(0.5f).tanh_(); });
}

}  // namespace

DeviceRates MeasureRates(c10::Device device, c10::ScalarType dtype) {
  const int64_t rows = device.is_cpu() ? 1024 : 2048, dim = device.is_cpu() ? 1024 : 4096;
  return {.model = ProductRate(device, dtype, rows, dim),
          .statistics = StatisticsRate(device, dtype),
          .scores = ProductRate(device, at::kFloat, rows, dim),
          .elements = ElementRate(device)};
}

double MeasureHostRate() {
  // The eigensolver reaches a lower rate, because it uses small matrices and mostly level-2 BLAS.
  constexpr double kOfProducts = 0.15;
  return kOfProducts * ProductRate(at::kCPU, at::kDouble, 1024, 1024);
}

}  // namespace oscar
