// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of the tensors of a rotation file, measured in float64. A published matrix was rounded to
// float32, so it is orthogonal to about 5e-8, never exactly.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "export/formats/rotation_file.h"

namespace oscar {

struct MatrixStack {
  int64_t count = 0;  // number of matrices: KV heads, or 1
  int64_t dim = 0;    // rows and columns of each
  bool per_head = false;
};

// Reads the shape of a rotation: [d, d] or [num_kv_heads, d, d], both positive. Throws InputError
// naming `what` otherwise.
MatrixStack StackOf(const std::vector<int64_t>& shape, std::string_view what);

// Returns max|A B^T - I| over the row-major stack. `scale`, if not null, receives max of |A| |B|^T.
double InverseError(const MatrixStack& stack, const std::vector<double>& a,
                    const std::vector<double>& b, double* scale = nullptr);

// Throws InputError naming `what` at the first NaN or Inf.
void CheckFinite(const FloatTensor& tensor, std::string_view what);
void CheckFinite(const std::vector<double>& values, std::string_view what);

// Checks shapes and values of a layer's tensors, and sets the measured fields. Tensors that layers
// share are measured only once.
class RotationChecker {
 public:
  // `dtype`: type of the rotation in the file. If `must_be_orthogonal` is false, q_rotation or
  // o_rotation must undo the rotation instead.
  void Check(RotationLayer* layer, DType dtype, bool must_be_orthogonal, std::string_view where);

  // Calls CheckFinite once per tensor.
  void Finite(const FloatTensor& tensor, std::string_view what);

 private:
  struct Measured {
    double error = 0, scale = 0;
  };
  const Measured& Inverse(const FloatTensor& a, const FloatTensor& b);
  std::optional<double> CheckInverse(const FloatTensor& rotation, const FloatTensorPtr& inverse,
                                     std::string_view where, std::string_view name);

  std::map<std::pair<const FloatTensor*, const FloatTensor*>, Measured> measured_;
  std::set<const FloatTensor*> finite_;
};

// Checks that layers agree: unique ids, one kind of shape, one head count per head_dim, and
// q_rotation, o_rotation, k_mean, mean on every layer or on none.
void CheckLayersAgree(const RotationFile& file);

}  // namespace oscar
