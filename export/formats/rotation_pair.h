// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The K file and the V file of one calibration. Each may be valid, yet they may not belong
// together: sides were swapped, or one file has other layers or comes from another run. A pair is
// refused if anything in the files shows this.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "export/formats/rotation_file.h"

namespace oscar {

struct RotationPair {
  RotationFile k, v;
};

// Throws InputError naming both files if a layer is missing on one side, an objective is of the
// other side, the calibration blocks are of different runs (generation, model, prompts, tokens),
// head counts differ, or layers with the same K dimension have different V dimensions.
RotationPair OpenRotationPair(const std::filesystem::path& k_path,
                              const std::filesystem::path& v_path);
void CheckRotationPair(const RotationPair& pair);

// Finds the only k_rotation*.pt and the only v_rotation*.pt of a directory. Returns nothing if
// there is neither. Throws InputError if one side is missing or has several files; upstream's zoo
// mixes shared and per-head pairs in one folder.
std::optional<std::pair<std::filesystem::path, std::filesystem::path>> FindRotationPair(
    const std::filesystem::path& directory);

// Returns the side that an upstream objective is for: 'k' (qqt, ktk, oscar2_<variant>, identity-k),
// 'v' (sst, vtv, attention_output, oscar2_v_*, identity-v), or 0 for either.
char ObjectiveSide(std::string_view objective);

}  // namespace oscar
