// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Refuses --kernels in a build without the kernels.
#include "linalg/base/error.h"
#include "tools/validate/kernel_check.h"

namespace oscar {

std::unique_ptr<KernelCheck> MakeKernelCheck(const Artifact&, at::Device, const ValidateOptions&,
                                             size_t) {
  throw ResourceError(
      "--kernels: this program was built without the CUDA toolkit, so it has no kernels; configure "
      "the build with -DOSCAR_WITH_CUDA=ON");
}

}  // namespace oscar
