// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/write/register_launch.cuh"

namespace oscar {

void LaunchRegisterWrite256(const WriteArguments& a, int first_side, int num_sides,
                            cudaStream_t stream) {
  LaunchRegisterWrite<256>(a, first_side, num_sides, stream);
}

}  // namespace oscar
