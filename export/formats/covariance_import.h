// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Covariances out of rotation files: a composed rotation and its eigenvalues hold the second moment
// they were fitted to, C = U diag(eigenvalues) U^T. The composition is known only from the
// objective's name, so an unknown name is refused.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "export/formats/rotation_file.h"
#include "linalg/matrix.h"
#include "linalg/rotation.h"

namespace oscar {

struct LayerCovariances {
  int64_t layer_id = 0;
  std::vector<Matrix> covariances;  // [d, d] each: one if shared, else one per KV head
};

// The composition at the end of "qqt_r_h_pbr". Throws InputError for objectives that hold no
// covariance (hadamard, uresidual, identity) or are not known.
Composition ObjectiveComposition(std::string_view objective);

// Throws InputError if the file holds no eigenvalues or a composition without U.
std::vector<LayerCovariances> RecoverCovariances(const RotationFile& file);

}  // namespace oscar
