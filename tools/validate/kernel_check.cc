// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements --kernels in a build with the kernels.
#include "tools/validate/kernel_check.h"

#include "export/validate/kernel_validation.h"

namespace oscar {
namespace {

class WithKernels : public KernelCheck {
 public:
  WithKernels(const Artifact& artifact, at::Device device, const KernelValidationOptions& options)
      : validation_(artifact, device, options) {}
  LayerObserver& observer() override { return validation_; }
  Json Report() const override { return validation_.Report(); }

 private:
  KernelValidation validation_;
};

}  // namespace

std::unique_ptr<KernelCheck> MakeKernelCheck(const Artifact& artifact, at::Device device,
                                             const ValidateOptions& options, size_t num_texts) {
  return std::make_unique<WithKernels>(
      artifact, device,
      KernelValidationOptions{.windows = options.validation.methods.windows,
                              .quant_group_size = options.validation.methods.quant_group_size,
                              .k_bits = static_cast<int>(options.k_bits),
                              .v_bits = static_cast<int>(options.v_bits),
                              .num_sequences = static_cast<int64_t>(num_texts)});
}

}  // namespace oscar
