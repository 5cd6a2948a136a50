// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/decode/decode_launch.cuh"

template void oscar::LaunchDecodeBits<128, 128, 3>(const DecodeKernelArguments&, dim3,
                                                   cudaStream_t);
