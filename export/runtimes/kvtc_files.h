// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVTC's file (kvtc_file.h) out of a dump, or out of an artifact that it was imported to. Artifacts
// of our own hold moments of single KV heads, which is something else: components across layers
// need the tokens themselves.
#pragma once

#include <cstdint>
#include <filesystem>

#include "export/artifact/artifact_reader.h"
#include "export/artifact/imported_artifact.h"
#include "export/formats/pt/pt_file.h"

namespace oscar {

inline constexpr int64_t kKvtcSinks = 4, kKvtcRecent = 128;  // tokens that stay as they are

struct KvtcWorkers {
  int64_t tp = 1, pp = 1;  // heads and layers are divided among them
};

// Writes <output>/kvtc.pt and launch.txt. Throws InputError for latent attention, layers that are
// missing or differ, workers that do not divide them, and dumps with too few tokens.
void WriteKvtc(const std::filesystem::path& dump, const KvtcWorkers& workers,
               const std::filesystem::path& output);

// A file as somebody published it, and out again with the same values. Throw InputError for files
// that its loader would not load, and for artifacts that hold none.
ImportedFiles ImportedKvtc(const PtFile& file);
void WriteImportedKvtc(const Artifact& artifact, const std::filesystem::path& output);

}  // namespace oscar
