// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lints upstream's .pt files: each separately, then those of a folder against each other. Only the
// file name tells the side, because a bare matrix does not say what it is.
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

// Checks the files of one folder: pairs, groups, layers against the model. `complete`: the list has
// all files of the folder, so a partner that is not in it does not exist.
void LintPtFolder(const std::vector<PtFacts>& files, bool complete, const LintOptions& options,
                  LintSink* sink);

// Checks layers and dimensions of one side against the model, or for gaps if there is no model.
// `dims`: layer id to (number of KV heads, or 0 if they share one rotation, and head dimension).
struct LayerShape {
  int64_t layer_id = 0;
  int64_t num_kv_heads = 0;  // 0: the heads share one rotation
  int64_t dim = 0;
};
void LintLayers(const std::vector<LayerShape>& layers, char side, const LintPlace& place,
                const LintOptions& options, LintSink* sink);

}  // namespace oscar
