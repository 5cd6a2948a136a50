// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds small checkpoints for tests, valid and invalid ones.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace oscar {

// Returns the bytes of a safetensors file: the length, `header` and `data`, which need not be
// valid.
std::string SafetensorsBytes(std::string_view header, std::string_view data);

void WriteText(const std::filesystem::path& path, std::string_view content);

// Writes a file with one F32 [2, 2] tensor, whose 16 bytes are all `fill`.
void WriteOneTensor(const std::filesystem::path& path, const std::string& name, char fill);

}  // namespace oscar
