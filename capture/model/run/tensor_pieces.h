// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace oscar {

// Calls piece(0) .. piece(count - 1), which compute on tensors of the host without gradients, on as
// many threads as LibTorch uses, each with a BLAS of one thread. (at::parallel_for, whose code is
// in a header, runs everything on one thread in units that are compiled without OpenMP.)
void ForEachTensorPiece(int64_t count, const std::function<void(int64_t)>& piece);

}  // namespace oscar
