// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Small checkpoints, sound and broken, built in code.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace oscar {

// A safetensors file as bytes: length, `header` and `data`, whatever they are.
std::string SafetensorsBytes(std::string_view header, std::string_view data);

void WriteText(const std::filesystem::path& path, std::string_view content);

// A file with one F32 [2, 2] tensor, whose 16 bytes are all `fill`.
void WriteOneTensor(const std::filesystem::path& path, const std::string& name, char fill);

}  // namespace oscar
