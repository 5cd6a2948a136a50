// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace oscar {

// Calls piece(0) .. piece(count - 1) on as many threads as LibTorch uses, each with a BLAS of one
// thread. Pieces compute on host tensors, without gradients. (at::parallel_for would run everything
// on one thread in files that are compiled without OpenMP, because its code is in a header.)
void ForEachTensorPiece(int64_t count, const std::function<void(int64_t)>& piece);

}  // namespace oscar
