// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Stores named tensors of a run on disk, with their types and exact bytes: the hidden states from
// which a resumed run continues, and the sums that a shard observed in a layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "linalg/base/error.h"

namespace oscar {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Returns the tensor's bytes, as a view if it is contiguous.  // [nbytes] uint8
at::Tensor BytesOf(const at::Tensor& tensor);

void WriteTensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

// Fills contiguous tensors on any device. Throws InputError with `remedy` unless the file holds
// exactly tensors of these names, types and shapes.
void ReadTensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                 Remedy remedy = Remedy::kNone);

}  // namespace oscar
