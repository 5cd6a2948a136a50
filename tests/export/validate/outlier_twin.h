// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes a model that computes the same function bit for bit, but has outlier channels in K and V,
// like models/make_outlier.py of the test packs. QK-norm weights multiply channel pairs of K by
// powers of two and divide those of Q. Channels of V are scaled likewise, and the columns of o_proj
// inversely. The random numbers are torch's, so a seed gives the same twin.
#pragma once

#include <cstdint>
#include <filesystem>

namespace oscar {

// `from` is a model of one weight file with QK-norm; `to` must not exist.
void WriteOutlierTwin(const std::filesystem::path& from, const std::filesystem::path& to,
                      uint64_t seed);

}  // namespace oscar
