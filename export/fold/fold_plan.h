// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans what an artifact folds into its model: pair scales of keys, balanced values or the chosen
// rotation of values, and the record of both.
#pragma once

#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"
#include "capture/model/spec/model_spec.h"
#include "export/artifact/artifact_reader.h"
#include "export/fold/weight_edits.h"

namespace oscar {

// The source of key scales. The artifact's automatic choice (oscar-calibrate --auto) fitted its
// rotations to keys with its own scales; the other scales are made from the artifact's moments.
enum class FoldScales {
  kAuto,  // chosen ones if there are any, else powers of two; beside a rotation of values, which
          // was chosen with or without scales, those of its choice
  kChosen,
  kExact,
  kPowerOfTwo,  // logits stay bit for bit
};

// The change of v_proj and o_proj.
enum class FoldValues {
  kNone,
  kBalanced,  // made from the moments; calibrate the copy
  kRotation,  // R_V of the choice, or OSCAR's own if the artifact has no choices
};

struct FoldOptions {
  FoldScales scales = FoldScales::kAuto;
  std::string runtime = {};  // whose choice; empty: the headline's, or the first that folds
  FoldValues values = FoldValues::kNone;
  bool chosen = true;           // use the automatic choice; else OSCAR's own rotations
  double value_epsilon = 1e-3;  // for kBalanced
};

struct FoldPlan {
  std::vector<LayerFold> layers;  // as in ModelSpec::layers
  bool exact = true;              // every scale is a power of two: logits stay bit for bit
  std::string choice;             // the choice that the layers belong to; empty: none
  Json record;                    // content of kFoldFile
};

// Throws InputError if the artifact lacks what the options need or belongs to another model, or if
// the layers of the model cannot hold the transforms.
FoldPlan PlanFold(const Artifact& artifact, const Checkpoint& checkpoint, const ModelSpec& spec,
                  const FoldOptions& options);

}  // namespace oscar
