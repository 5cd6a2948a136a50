// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scales and recipes of caches as others publish them (the writers beside this file say the
// formats), read back.
#pragma once

#include <filesystem>
#include <optional>

#include "export/artifact/imported_artifact.h"

namespace oscar {

// Nothing where the path is no such file or directory; InputError where it is a broken one.
std::optional<ImportedFiles> ReadPublishedScales(const std::filesystem::path& path);

}  // namespace oscar
