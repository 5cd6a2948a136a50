// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lints upstream's .pt files: first each file, then the files of a folder against each other.
// Whether a file is for K or V is taken from its name, because a bare matrix does not say so.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "export/formats/rotation_file.h"
#include "zoo/lint/lint.h"
#include "zoo/lint/lint_measure.h"

namespace oscar {

struct PtFacts {
  std::filesystem::path path;
  char side = 0;                     // 'k' or 'v', from the name or else the objective; 0: unknown
  std::optional<RotationFile> file;  // absent if the strict reader refuses it

  bool mla() const;        // whether it is a layer of a latent cache
  bool rotations() const;  // whether it holds K or V rotations, which come in pairs
  bool per_head() const;
  std::vector<int64_t> ids() const;  // ascending
};

// Collects what lint needs to know about one file.
PtFacts LintPtFile(const std::filesystem::path& path, LintSink* sink);

// Checks the files of one folder: pairs of K and V files, shared rotations next to per-head ones,
// and the layers against the model. `complete`: the list contains every file of the folder, so a
// partner that is not listed does not exist.
void LintPtFolder(const std::vector<PtFacts>& files, bool complete, const LintOptions& options,
                  LintSink* sink);

// The heads of one layer in a file.
struct LayerShape {
  int64_t layer_id = 0;
  int64_t num_kv_heads = 0;  // 0: the heads share one rotation
  int64_t dim = 0;
};
// Checks the layers of one side (K or V) against the model. Without a model, reports gaps in the
// layer ids.
void LintLayers(const std::vector<LayerShape>& layers, char side, const LintPlace& place,
                const LintOptions& options, LintSink* sink);

}  // namespace oscar
