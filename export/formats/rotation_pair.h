// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The K and the V file of one calibration. Two files that load separately may still not belong
// together: swapped sides, other layers, another run. A pair is refused if anything in either file
// shows that it does not match.
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

// Throws InputError naming both files: layers missing on one side, an objective of the wrong side,
// calibration blocks of different runs (generation, model, prompts, tokens), different head counts,
// or layers with the same K geometry but different V geometry.
RotationPair OpenRotationPair(const std::filesystem::path& k_path,
                              const std::filesystem::path& v_path);
void CheckRotationPair(const RotationPair& pair);

// Finds the only k_rotation*.pt and the only v_rotation*.pt of a directory. Returns nothing if it
// has neither. Throws InputError if it has one side only, or several files for a side (upstream's
// zoo mixes shared and per-head pairs in a folder).
std::optional<std::pair<std::filesystem::path, std::filesystem::path>> FindRotationPair(
    const std::filesystem::path& directory);

// Returns the side of an objective, by upstream's names: 'k' (qqt, ktk, oscar2_<variant>,
// identity-k), 'v' (sst, vtv, attention_output, oscar2_v_*, identity-v), or 0 if it may be either.
char ObjectiveSide(std::string_view objective);

}  // namespace oscar
