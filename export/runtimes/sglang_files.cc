// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes files for the two trees of OSCAR's SGLang. The main tree loads pairs of files in versions
// 1 and 2. The October tree loads version 3, and directories with latents.
#include "export/artifact/chosen_rotations.h"
#include "export/artifact/foreign_rotations.h"
#include "export/formats/mla_folder.h"
#include "export/formats/sglang_choice.h"
#include "export/runtimes/exporter.h"

namespace oscar {

void WriteSglangFiles(const Artifact& artifact, const ExportRequest& request,
                      const std::filesystem::path& output) {
  if (!request.chosen) return WriteSglang(output, ToSglang(artifact));
  WriteSglangChoice(output, ChosenForRuntime(artifact, Consumer::kSglang, request.folded),
                    SglangVersion::kV1);
}

void WriteSglangOctFiles(const Artifact& artifact, const ExportRequest& request,
                         const std::filesystem::path& output) {
  if (HoldsLatents(artifact))
    return WriteMlaFolder(output, LatentsForSglang(artifact, request.chosen));
  WriteSglangChoice(output, ChosenForRuntime(artifact, Consumer::kSglangOct, request.folded),
                    SglangVersion::kV3);
}

}  // namespace oscar
