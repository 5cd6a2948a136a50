// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's NCCL behind its general interface: the one file that needs headers of CUDA is its
// source.
#pragma once

#include <ATen/core/Tensor.h>  // before c10d's headers

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace oscar {

bool HasNccl();
c10::intrusive_ptr<c10d::Backend> MakeNcclBackend(const c10::intrusive_ptr<c10d::Store>& store,
                                                  int rank, int size);

}  // namespace oscar
