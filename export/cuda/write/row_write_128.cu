// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/write/register_launch.cuh"
#include "export/cuda/write/row_blocks.cuh"

namespace oscar {

void LaunchRowPrefill128(const WriteArguments& a, int first_side, int num_sides,
                         cudaStream_t stream) {
  const SideArguments& side = a.sides[first_side];
  const bool fitted = side.side.quant_group_size != 128, feedback = side.feedback != nullptr;
  const auto kernel = !fitted    ? RowPrefillKernel<128, false, true>
                      : feedback ? RowPrefillKernel<128, true, true>
                                 : RowPrefillKernel<128, true, false>;
  LaunchPipelinedPrefill<128>(
      a, first_side, num_sides, kernel, kRowThreads,
      feedback ? RowShared<128, true>::kBytes : RowShared<128, false>::kBytes, stream);
}

}  // namespace oscar
