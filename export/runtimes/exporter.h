// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The targets of oscar-export --to, as a table for that program and for oscar-doctor.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "export/artifact/artifact_reader.h"

namespace oscar {

struct ExportRequest {
  bool chosen = true;   // use the choice for the runtime, instead of OSCAR's own rotations
  bool folded = false;  // use the choice that was made for a folded copy of the checkpoint
  std::filesystem::path merge_into = {};  // for llamacpp: a model's GGUF to copy; may be empty
  std::filesystem::path model_gguf = {};  // for kv-mean-center: the model's GGUF; may be empty
  std::filesystem::path checkpoint = {};  // the model's directory, if `needs_model`
  bool whole_copy = false;                // also copy the checkpoint's other files
  bool per_head = false;                  // for kv-scales: a scale for each KV head
  // Budget in bits per value; 0: the artifact's own. For oscar-torch it selects a choice. For
  // TypedRuntimes() it replaces the budget of the artifact.
  double bits = 0;
};

struct Exporter {
  std::string_view name;  // as in --to; equals ConsumerRules::export_target if it loads a choice
  std::string_view help;
  // The content of the files, for example "key means". Empty: the choice that was made for the
  // runtime.
  std::string_view carries = {};
  bool any_bits = false;     // uses ExportRequest::bits
  bool needs_model = false;  // writes files for a checkpoint, which must be given
  // Why the target cannot store latents (MLA) and which target can, as text that follows the
  // artifact's name. Empty if it can.
  std::string_view why_no_latents = {};
  std::string_view why_no_own_rotations = {};  // why OSCAR's own rotations cannot be exported
  std::string_view of_latents = {};            // the content for latents, if it differs
  // Writes `output`, which must not exist; on failure leaves nothing there. Throws InputError if
  // the artifact has nothing for this runtime.
  void (*write)(const Artifact& artifact, const ExportRequest& request,
                const std::filesystem::path& output);
};

std::span<const Exporter> AllExporters();

// Writes the files of one --to target. Throws InputError if they cannot be made from this artifact.
void WriteForRuntime(const Exporter& exporter, const Artifact& artifact,
                     const ExportRequest& request, const std::filesystem::path& output);

}  // namespace oscar
