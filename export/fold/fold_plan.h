// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans what is folded into a model: the pair scales of an artifact's keys, and balanced values or
// a rotation of values. Also makes the record of both.
#pragma once

#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"
#include "capture/model/spec/model_spec.h"
#include "export/artifact/artifact_reader.h"
#include "export/fold/weight_edits.h"

namespace oscar {

// The source of key scales. An artifact's automatic choice (oscar-calibrate --auto) may have
// scales, to which its rotations were fitted. Other scales are made from the artifact's moments.
enum class FoldScales {
  kAuto,  // those of the choice; without a choice, powers of two, or none if values are rotated
  kChosen,
  kExact,
  kPowerOfTwo,  // logits stay bit-identical
};

// The change to v_proj and o_proj.
enum class FoldValues {
  kNone,
  kBalanced,  // made from the moments; the copy must be calibrated afterwards
  kRotation,  // R_V of the choice, or OSCAR's own if the artifact has no choices
};

struct FoldOptions {
  FoldScales scales = FoldScales::kAuto;
  std::string runtime = {};  // whose choice is used; empty: the headline's or the first that folds
  FoldValues values = FoldValues::kNone;
  bool chosen = true;           // use the automatic choice; else OSCAR's own rotations
  double value_epsilon = 1e-3;  // for kBalanced
};

struct FoldPlan {
  std::vector<LayerFold> layers;  // in the order of ModelSpec::layers
  bool exact = true;              // every scale is a power of two, so logits stay bit-identical
  std::string choice;             // the choice to which the layers belong; empty: none
  Json record;                    // content of kFoldFile
};

// Throws InputError if the artifact belongs to another model or lacks what the options need, or if
// the model's layers cannot absorb the transforms.
FoldPlan PlanFold(const Artifact& artifact, const Checkpoint& checkpoint, const ModelSpec& spec,
                  const FoldOptions& options);

}  // namespace oscar
