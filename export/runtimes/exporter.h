// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What oscar-export --to writes: the table that the program and doctor read.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "export/artifact/artifact_reader.h"

namespace oscar {

struct ExportRequest {
  bool chosen = true;   // what was chosen for the runtime; else OSCAR's own rotations
  bool folded = false;  // the choice for a folded copy of the checkpoint
  std::filesystem::path merge_into = {};  // of llamacpp: a model's GGUF to copy; empty: none
};

struct Exporter {
  std::string_view name;  // as --to says it; ConsumerRules::export_target of who loads the files
  std::string_view help;
  // Empty where it can; else why it cannot and what can, in words that follow the artifact's name.
  std::string_view why_no_latents = {};
  std::string_view why_no_own_rotations = {};  // OSCAR's, of a model without latents
  std::string_view of_latents = {};            // what it writes of them, where that is special
  // Makes `output`, which does not exist, or leaves nothing there. Throws InputError where the
  // artifact holds nothing for this runtime.
  void (*write)(const Artifact& artifact, const ExportRequest& request,
                const std::filesystem::path& output);
};

std::span<const Exporter> AllExporters();

// What --to writes of an artifact: InputError where it cannot.
void WriteForRuntime(const Exporter& exporter, const Artifact& artifact,
                     const ExportRequest& request, const std::filesystem::path& output);

}  // namespace oscar
