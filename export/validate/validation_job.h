// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Stores finished layers of a validation on disk, so that it can be resumed: their results, and the
// hidden states of every stream that enter the next layer.
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
  // Keeps references. If `job` is null, this class does nothing.
  ValidationJob(JobDirectory* job, const ModelSpec& spec, ValidationObserver& observer);

  // Returns the first layer to run. Loads the results of earlier layers into the observer and the
  // hidden states after them into `streams`. Throws InputError for files of another validation.
  size_t Resume(std::span<at::Tensor> streams);
  // Stores all finished layers if the run is stopping, or if the last write was long enough ago.
  void AfterLayer(size_t layer_index, std::span<const at::Tensor> streams, bool stopping);

 private:
  using Clock = std::chrono::steady_clock;

  bool CanStartAfter(size_t layer_index) const;

  JobDirectory* job_;
  const ModelSpec& spec_;
  ValidationObserver& observer_;
  size_t added_ = 0;             // number of layers on disk
  Clock::time_point next_ = {};  // time of the next write
};

}  // namespace oscar
