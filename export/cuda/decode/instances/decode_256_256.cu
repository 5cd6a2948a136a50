// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/decode/decode_launch.cuh"

template void oscar::LaunchDecode<256, 256>(const DecodeKernelArguments&, dim3, cudaStream_t);
