// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An owned array in device memory, for benchmarks, tests and validation. Kernels themselves
// allocate nothing.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "export/cuda/device/cuda_check.h"

namespace oscar {

template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(size_t size) : size_(size) {
    if (size > 0) OSCAR_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&data_), size * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    if (size_ > 0)
      OSCAR_CUDA_CHECK(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }

  // Sets every byte to `byte`; 0xFF makes bf16, float32 and float64 NaN.
  void Fill(int byte) {
    if (size_ > 0) OSCAR_CUDA_CHECK(cudaMemset(data_, byte, bytes()));
  }
  std::vector<T> ToHost() const {  // synchronizes
    std::vector<T> values(size_);
    if (size_ > 0)
      OSCAR_CUDA_CHECK(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace oscar
