// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reports the content of a file or directory as JSON and as text, for oscar-export --inspect. The
// content decides the format. A file is refused if its name contradicts the content (a safetensors
// file called .pt), because other programs load it by its name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

// Throws InputError if no format matches or the matching reader refuses the file.
//
// Every report has "format": "pt", "pair", "mla-folder", "safetensors", "gguf" or "checkpoint".
// Those of safetensors, gguf and checkpoint have "tensors", name to dtype and shape. A "pair" has
// two .pt reports "k" and "v"; an "mla-folder" has a list of them, "files".
//
// A "pt" report has kind, file, bytes, sha256, container, top, layer_ids (in file order),
// layer_key_type and layers; files without layers have entry or tensor instead. Each tensor has
// dtype, shape, stride, storage_offset and the sha256 of its row-major bytes. Square matrices also
// have max_abs_RRt_minus_I; eigenvalues also have sum, min, max and ascending.
Json InspectFile(const std::filesystem::path& path);

std::string InspectText(const Json& report);

// Functions for single formats (see the table in inspect.cc).
bool IsPtFile(const std::filesystem::path& path);
Json InspectPt(const std::filesystem::path& path);
bool IsPairFolder(const std::filesystem::path& path);
Json InspectPairFolder(const std::filesystem::path& path);
Json InspectMlaFolder(const std::filesystem::path& path);
bool IsSafetensorsFile(const std::filesystem::path& path);
Json InspectSafetensors(const std::filesystem::path& path);
Json InspectGguf(const std::filesystem::path& path);
bool IsCheckpointFolder(const std::filesystem::path& path);
Json InspectCheckpoint(const std::filesystem::path& path);

}  // namespace oscar
