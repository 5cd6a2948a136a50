// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The formats of oscar-export --to: a table for that program and for doctor.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "export/artifact/artifact_reader.h"

namespace oscar {

struct ExportRequest {
  bool chosen = true;   // use the choice for the runtime, not OSCAR's own rotations
  bool folded = false;  // use the choice for a folded copy of the checkpoint
  std::filesystem::path merge_into = {};  // for llamacpp: a model's GGUF to copy; may be empty
  std::filesystem::path model_gguf = {};  // for kv-mean-center: the model's GGUF; may be empty
  std::filesystem::path checkpoint = {};  // the model's directory, if `needs_model`
  bool whole_copy = false;                // also copy the checkpoint's other files
  bool per_head = false;                  // for kv-scales: a scale for each KV head
  // Budget per value. For oscar-torch it selects a choice, for TypedRuntimes() it replaces the
  // artifact's budget. 0: the artifact's own.
  double bits = 0;
};

struct Exporter {
  std::string_view name;  // as in --to, and in ConsumerRules::export_target if it loads a choice
  std::string_view help;
  // The content of its files if that is not a choice, for example "key means". Empty: they hold the
  // choice for its consumer.
  std::string_view carries = {};
  bool any_bits = false;     // uses ExportRequest::bits
  bool needs_model = false;  // writes files for a checkpoint, which must be given
  // Why it cannot export latents, and which target can, as text after the artifact's name. Empty if
  // it can.
  std::string_view why_no_latents = {};
  std::string_view why_no_own_rotations = {};  // for models without latents
  std::string_view of_latents = {};            // what it writes for latents, if that differs
  // Writes `output`, which must not exist; leaves nothing there if it fails. Throws InputError if
  // the artifact has nothing for this runtime.
  void (*write)(const Artifact& artifact, const ExportRequest& request,
                const std::filesystem::path& output);
};

std::span<const Exporter> AllExporters();

// Writes the files for one --to target. Throws InputError if the artifact does not allow it.
void WriteForRuntime(const Exporter& exporter, const Artifact& artifact,
                     const ExportRequest& request, const std::filesystem::path& output);

}  // namespace oscar
