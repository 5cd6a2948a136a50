// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model that computes the same function bit for bit with outlier channels in K and V, as
// models/make_outlier.py of the test packs writes it: channel pairs of K are multiplied by powers
// of two and those of Q divided, through the QK-norm weights; channels of V likewise, with the
// columns of o_proj. The random numbers are torch's, so a seed gives the same twin.
#pragma once

#include <cstdint>
#include <filesystem>

namespace oscar {

// `from` is a model of one weight file with QK-norm; `to` must not exist.
void WriteOutlierTwin(const std::filesystem::path& from, const std::filesystem::path& to,
                      uint64_t seed);

}  // namespace oscar
