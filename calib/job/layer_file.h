// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A file in a job directory that holds one finished layer of a running job: moments and everything
// fitted to them, without loss. Artifacts hold moments.safetensors and rotations.safetensors
// instead.
#pragma once

#include <filesystem>

#include "calib/job/layer_result.h"
#include "calib/moments/moments_file.h"

namespace oscar {

void WriteLayerFile(const std::filesystem::path& path,
                    const LayerResult& result);  // writes the file whole or not at all
// Throws InputError if the file is damaged.
LayerResult ReadLayerFile(const std::filesystem::path& path, MomentsPart part = MomentsPart::kAll);

}  // namespace oscar
