// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/product.h"

#include <ATen/Parallel.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "capture/model/run/elementwise.h"
#include "capture/model/run/tensor_pieces.h"

namespace oscar {
namespace {

class Products : public testing::Test {
 protected:
  ~Products() override { at::set_num_threads(threads_); }

  // Expects the same bytes for any number of threads, equal to `expected` up to rounding.
  template <typename Product>
  void Expect(const Product& product, const at::Tensor& expected) {
    at::set_num_threads(1);
    const at::Tensor one = product();
    EXPECT_TRUE(one.sizes() == expected.sizes()) << one.sizes() << " " << expected.sizes();
    EXPECT_LT(one.to(at::kDouble).sub(expected).abs().max().item<double>(), 1e-4);
    for (const int threads : {2, 3, 16}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(product().equal(one)) << one.sizes() << ", " << threads << " threads";
    }
  }

 private:
  const int threads_ = at::get_num_threads();
};

at::Tensor Random(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
  return at::randn(shape, at::dtype(dtype));
}

// Each of two pieces waits until the other one has begun, which a single thread cannot satisfy.
TEST_F(Products, PiecesRunOnSeveralThreads) {
  at::set_num_threads(2);
  std::atomic<int> begun = 0, met = 0;
  ForEachTensorPiece(2, [&](int64_t) {
    ++begun;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    met += begun == 2 ? 1 : 0;
  });
  EXPECT_EQ(met, 2);
}

// A BLAS would divide these rows into pieces of different shapes for each number of threads.
TEST_F(Products, AreTheSameForAnyNumberOfThreads) {
  for (const int64_t rows : {1, 5, 7, 11, 17, 23, 47, 300}) {
    for (const int64_t outputs : {16, 40, 151, 1100}) {
      const at::Tensor x = Random({rows, 192}), w = Random({outputs, 192}), b = Random({outputs});
      Expect([&] { return LinearProduct(x, w, b); },
             at::linear(x.to(at::kDouble), w.to(at::kDouble), b.to(at::kDouble)));
    }
  }
  for (const int64_t heads : {1, 3}) {
    const at::Tensor a = Random({heads, 2, 23, 96}), b = Random({heads, 2, 96, 600});
    Expect([&] { return BatchProduct(a, b); }, at::matmul(a.to(at::kDouble), b.to(at::kDouble)));
    const at::Tensor x = Random({heads, 701, 24}, at::kDouble),
                     sum = Random({heads, 24, 24}, at::kDouble);
    const at::Tensor squares = at::matmul(x.transpose(1, 2), x);
    for (const bool add : {false, true}) {
      const auto product = [&] {
        at::Tensor to = sum.clone();
        BatchProductInto(to, x.transpose(1, 2), x, add);
        return to;
      };
      Expect(product, add ? squares + sum : squares);
    }
  }
}

// 100,007 values cannot be divided into whole vectors for any number of threads.
TEST_F(Products, SoAreFunctionsOfSingleValues) {
  const at::Tensor x = Random({97, 1031});
  const at::Tensor turned = Random({1031, 97}).t();
  for (const at::Tensor& values : {x, turned}) {
    const at::Tensor wide = values.to(at::kDouble);
    Expect([&] { return Silu(values); }, at::silu(wide));
    Expect([&] { return Exp(values); }, at::exp(wide));
    const auto tanh = [&] {
      at::Tensor in_place = values.clone(at::MemoryFormat::Preserve);
      ElementwiseInPlace(in_place, [](at::Tensor& v) { v.tanh_(); });
      return in_place;
    };
    Expect(tanh, at::tanh(wide));
  }
}

TEST_F(Products, KeepShapesAndGradients) {
  const at::Tensor w = Random({8, 6});
  EXPECT_EQ(LinearProduct(Random({2, 3, 6}), w).sizes(), at::IntArrayRef({2, 3, 8}));
  EXPECT_EQ(LinearProduct(Random({0, 6}), w).sizes(), at::IntArrayRef({0, 8}));
  const at::Tensor x = Random({4, 6}).set_requires_grad(true);
  EXPECT_TRUE(LinearProduct(x, w).requires_grad());
}

}  // namespace
}  // namespace oscar
