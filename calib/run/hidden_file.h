// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Hidden states of all tokens between two layers, exact bytes in the compute dtype: what a resumed
// run continues from.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

namespace oscar {

void WriteHidden(const std::filesystem::path& path,
                 const at::Tensor& hidden /* [tokens, hidden_size] */);

// On the CPU. Throws InputError if the file holds anything but one tensor of this shape and dtype.
at::Tensor ReadHidden(const std::filesystem::path& path, at::IntArrayRef shape,
                      at::ScalarType dtype);

}  // namespace oscar
