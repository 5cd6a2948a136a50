// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/write/register_launch.cuh"

namespace oscar {

void LaunchRegisterWrite128(const WriteArguments& a, int first_side, int num_sides,
                            cudaStream_t stream) {
  LaunchRegisterWrite<128>(a, first_side, num_sides, stream);
}

}  // namespace oscar
