// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finished layers of a validation, stored on disk: their results, and every stream's hidden states
// that enter the next layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <span>

#include "calib/job/job_directory.h"
#include "capture/model/spec/model_spec.h"
#include "export/validate/validation_observer.h"

namespace oscar {

class ValidationJob {
 public:
  // Keeps references. Without a job this class does nothing.
  ValidationJob(JobDirectory* job, const ModelSpec& spec, ValidationObserver& observer);

  // Returns the first layer to run. Puts the results of earlier layers into the observer and their
  // hidden states into `streams`. Throws InputError for files of another validation.
  size_t Resume(std::span<at::Tensor> streams);
  // Stores the layers up to this one if the run is stopping, or has not stored any for a while.
  void AfterLayer(size_t layer_index, std::span<const at::Tensor> streams, bool stopping);

 private:
  using Clock = std::chrono::steady_clock;

  bool CanStartAfter(size_t layer_index) const;

  JobDirectory* job_;
  const ModelSpec& spec_;
  ValidationObserver& observer_;
  size_t added_ = 0;             // number of layers in the job
  Clock::time_point next_ = {};  // when layers are stored again
};

}  // namespace oscar
