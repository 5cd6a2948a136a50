// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks the tensors of a rotation file, in float64. Published matrices were rounded to float32, so
// they are orthogonal only to about 5e-8.
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

// Returns the number and size of a rotation's matrices from its shape, [d, d] or [num_kv_heads, d,
// d]. Throws InputError naming `what` for any other shape.
MatrixStack StackOf(const std::vector<int64_t>& shape, std::string_view what);

// Returns max|A B^T - I| over the stack's row-major matrices. `scale`, if not null, is raised to
// the largest element of |A| |B|^T.
double InverseError(const MatrixStack& stack, const std::vector<double>& a,
                    const std::vector<double>& b, double* scale = nullptr);

// Throws NumericalError naming `what` and the first NaN or Inf.
void CheckFinite(const FloatTensor& tensor, std::string_view what);
void CheckFinite(const std::vector<double>& values, std::string_view what);

// Checks the shapes and values of a layer's tensors, and sets its measured fields. Tensors that
// several layers share are measured only once.
class RotationChecker {
 public:
  // `dtype` is the rotation's type in the file. If `must_be_orthogonal` is false, the layer must
  // have a q_rotation or o_rotation that undoes the rotation.
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

// Checks that layer ids are unique and that layers agree. All rotations must be shared, or all per
// head. Layers with equal head_dim must have equal head counts. Each of q_rotation, o_rotation,
// k_mean, mean and pair_scale must be on every layer or on none.
void CheckLayersAgree(const RotationFile& file);

}  // namespace oscar
