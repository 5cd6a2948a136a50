// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a model: config.json of a directory, and what the metadata of a GGUF say in
// the same words. `model` is the directory or the GGUF file.
#pragma once

#include <filesystem>
#include <string>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"

namespace oscar {

bool HasModelConfig(const std::filesystem::path& model);
Json ReadModelConfig(const std::filesystem::path& model);
// What errors name: the path of config.json, or of the GGUF.
std::string ModelConfigName(const std::filesystem::path& model);
// Of config.json; of a GGUF everything before the tensors of its first file.
FileDigest DigestModelConfig(const std::filesystem::path& model);

}  // namespace oscar
