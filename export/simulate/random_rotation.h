// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotations drawn from the Haar measure: QR of a Gaussian matrix, with the signs of R's diagonal
// removed (Mezzadri 2007). We use our own generator, so that a seed gives the same matrix
// everywhere.
#pragma once

#include <cstdint>

#include "linalg/matrix.h"

namespace oscar {

// Returns [dim, dim] of independent N(0, 1).
Matrix RandomGaussian(int64_t dim, uint64_t seed, uint64_t stream);

// Returns [dim, dim]. Equal seeds and streams give equal results on every machine, up to rounding.
Matrix RandomRotation(int64_t dim, uint64_t seed, uint64_t stream);

}  // namespace oscar
