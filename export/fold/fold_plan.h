// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// From an artifact to what is folded into its model: pair scales of keys, balanced values or the
// rotation of values that was chosen, and the record of both.
#pragma once

#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"
#include "capture/model/spec/model_spec.h"
#include "export/artifact/artifact_reader.h"
#include "export/fold/weight_edits.h"

namespace oscar {

// Where key scales come from. Those of the artifact's automatic choice (oscar-calibrate --auto) are
// what its rotations were fitted behind; the others are made from its moments.
enum class FoldScales {
  kAuto,  // chosen ones if there are any, else powers of two; beside a rotation of values, which
          // was chosen with or without scales, those of its choice
  kChosen,
  kExact,
  kPowerOfTwo,  // logits stay bit for bit
};

// What goes into v_proj and o_proj.
enum class FoldValues {
  kNone,
  kBalanced,  // made of the moments; calibrate the copy
  kRotation,  // R_V of the choice, or OSCAR's own of an artifact without choices
};

struct FoldOptions {
  FoldScales scales = FoldScales::kAuto;
  std::string runtime = {};  // whose choice; empty: the headline's, or the first that folds
  FoldValues values = FoldValues::kNone;
  bool chosen = true;           // what was chosen; else OSCAR's own rotations
  double value_epsilon = 1e-3;  // of kBalanced
};

struct FoldPlan {
  std::vector<LayerFold> layers;  // as in ModelSpec::layers
  bool exact = true;              // every scale is a power of two: logits stay bit for bit
  std::string choice;             // that they are of; empty: none
  Json record;                    // of kFoldFile
};

// Throws InputError for an artifact without what the options need, or of another model; for a model
// whose layers cannot hold the transforms.
FoldPlan PlanFold(const Artifact& artifact, const Checkpoint& checkpoint, const ModelSpec& spec,
                  const FoldOptions& options);

}  // namespace oscar
