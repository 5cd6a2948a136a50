// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reports the content of a file or directory as JSON and as text: oscar-export --inspect. A format
// is recognised by content. A name that contradicts the content (a safetensors file called .pt) is
// refused, because other loaders rely on the name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

// Throws InputError if no format matches or its reader refuses the file. Members of every report:
//   format   "pt" | "pair" | "mla-folder" | "safetensors" | "checkpoint"
//   tensors  (safetensors, checkpoint) name to dtype and shape
// Members for .pt: kind, file, bytes, sha256, container, top, layer_ids (in file order),
// layer_key_type, layers (or entry, tensor). Each tensor has dtype, shape, stride, storage_offset,
// sha256 of its logical row-major bytes, max_abs_RRt_minus_I of square matrices, and sum, min, max,
// ascending of eigenvalues. A pair has "k" and "v", an MLA folder "files", each a .pt report.
Json InspectFile(const std::filesystem::path& path);

std::string InspectText(const Json& report);

// Inspects one format (see the table in inspect.cc).
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
