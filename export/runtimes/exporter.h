// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The formats of oscar-export --to: the table that the program and doctor read.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "export/artifact/artifact_reader.h"

namespace oscar {

struct ExportRequest {
  bool chosen = true;   // use the choice for the runtime; else OSCAR's own rotations
  bool folded = false;  // the choice for a folded copy of the checkpoint
  std::filesystem::path merge_into = {};  // of llamacpp: a model's GGUF to copy; empty: none
  std::filesystem::path model_gguf = {};  // of kv-mean-center: the model's; empty: not given
  std::filesystem::path checkpoint = {};  // where `needs_model`: its directory
  bool whole_copy = false;                // the checkpoint's files beside what is new
  bool per_head = false;                  // of kv-scales: a scale for each KV head
  // Per value. Of oscar-torch: the choice at that budget; of TypedRuntimes(): another budget than
  // the artifact's. 0: the artifact's own.
  double bits = 0;
};

struct Exporter {
  std::string_view name;  // as --to says it; ConsumerRules::export_target of who loads a choice
  std::string_view help;
  // The part of an artifact that it writes, if that is not a choice: "key means". Empty: the choice
  // for its consumer.
  std::string_view carries = {};
  bool any_bits = false;     // takes ExportRequest::bits
  bool needs_model = false;  // writes files that belong to a checkpoint, which must be given
  // Empty if it can write latents; else why not and what can, worded to follow the artifact's name.
  std::string_view why_no_latents = {};
  std::string_view why_no_own_rotations = {};  // OSCAR's, of a model without latents
  std::string_view of_latents = {};            // what it writes for latents, if that is special
  // Makes `output`, which must not exist, or leaves nothing there. Throws InputError if the
  // artifact holds nothing for this runtime.
  void (*write)(const Artifact& artifact, const ExportRequest& request,
                const std::filesystem::path& output);
};

std::span<const Exporter> AllExporters();

// Writes the files of one --to target. Throws InputError if the artifact does not allow it.
void WriteForRuntime(const Exporter& exporter, const Artifact& artifact,
                     const ExportRequest& request, const std::filesystem::path& output);

}  // namespace oscar
