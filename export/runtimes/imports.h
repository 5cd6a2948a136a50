// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Imports published files into an artifact that is marked "imported, unverified"
// (export/artifact/imported_artifact.h). Supports all formats of rotation files, and moments. The
// format is recognized by the content of the files.
#pragma once

#include <filesystem>
#include <string_view>

#include "capture/files/strict_json.h"

namespace oscar {

// Imports `files`: a file, a directory, or KEYS:VALUES, which are two rotation files of which one
// may be "none". Moments become an artifact that can be refitted (ImportMoments). Throws InputError
// naming the file if its format is unknown or a check fails.
void ImportPublished(std::string_view files, const Json& program,
                     const std::filesystem::path& output);

// Returns one line for each supported kind, for --list.
std::string_view ImportedKinds();

}  // namespace oscar
