// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a dump in float64, and back to where they were before the rotary embedding: for
// statistics that artifacts do not hold.
#pragma once

#include <string>

#include "capture/dump/dump_reader.h"
#include "capture/model/model_spec.h"
#include "linalg/matrix.h"

namespace oscar {

using DumpRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The rotary embedding of a layer's queries and keys. InputError where the dump does not say.
RopeSpec RopeOf(const DumpLayer& layer, const std::string& where);

// Stored values of `heads` heads of `dim` as rows [tokens, heads dim].
DumpRows RowsOf(const DumpLayer& layer, std::span<const std::byte> bytes, int64_t width);

// One head's rows [tokens, head_dim] of positions from 0 on, turned back.
void TurnBack(const RopeSpec& rope, Eigen::Ref<DumpRows> rows);

}  // namespace oscar
