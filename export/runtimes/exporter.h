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
  // What of an artifact it writes, where that is no choice: "key means". Empty: what was chosen for
  // its consumer.
  std::string_view carries = {};
  bool any_bits = false;     // takes ExportRequest::bits
  bool needs_model = false;  // writes what belongs to a checkpoint, which has to be at hand
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
