// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements oscar-validate --kernels. In a build without the kernels, MakeKernelCheck throws. The
// check uses the first sequences of the run, so texts must come before needles.
#pragma once

#include <memory>

#include "export/artifact/artifact_reader.h"
#include "export/validate/validate.h"
#include "tools/validate/validate_options.h"

namespace oscar {

class KernelCheck {
 public:
  virtual ~KernelCheck() = default;
  virtual LayerObserver& observer() = 0;
  virtual Json Report() const = 0;  // the member "kernels" of a validation
};

// Throws ResourceError if the build has no kernels, or if `device` is not a GPU.
std::unique_ptr<KernelCheck> MakeKernelCheck(const Artifact& artifact, at::Device device,
                                             const ValidateOptions& options, size_t num_texts);

}  // namespace oscar
