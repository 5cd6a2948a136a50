// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a model: config.json in a directory, or the metadata of a GGUF converted to
// the same fields. `model` is the directory or the GGUF file.
#pragma once

#include <filesystem>
#include <string>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"

namespace oscar {

bool HasModelConfig(const std::filesystem::path& model);
Json ReadModelConfig(const std::filesystem::path& model);
// Returns the name for errors: the path of config.json or of the GGUF.
std::string ModelConfigName(const std::filesystem::path& model);
// Digests config.json or, for a GGUF, everything before the tensors of its first file.
FileDigest DigestModelConfig(const std::filesystem::path& model);

}  // namespace oscar
