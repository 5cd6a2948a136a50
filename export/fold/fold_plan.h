// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// From an artifact's moments to what is folded into its model: pair scales of keys, balanced
// values, and the record of both.
#pragma once

#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"
#include "capture/model/model_spec.h"
#include "export/artifact/artifact_reader.h"
#include "export/fold/weight_edits.h"

namespace oscar {

// Where key scales come from. Those of the artifact's automatic choice (oscar-calibrate --auto) are
// what its rotations were fitted behind; the others are made from its moments.
enum class FoldScales {
  kAuto,  // chosen ones if there are any, else powers of two
  kChosen,
  kExact,
  kPowerOfTwo,  // logits stay bit for bit
};

struct FoldOptions {
  FoldScales scales = FoldScales::kAuto;
  std::string runtime =
      {};               // whose choice's scales; empty: the headline's, or the first that folds
  bool values = false;  // balanced values, into v_proj and o_proj
  double value_epsilon = 1e-3;
};

struct FoldPlan {
  std::vector<LayerFold> layers;  // as in ModelSpec::layers
  bool exact = true;              // every scale is a power of two: logits stay bit for bit
  Json record;                    // of kFoldFile
};

// Throws InputError for an artifact without what the options need, or of another model.
FoldPlan PlanFold(const Artifact& artifact, const Checkpoint& checkpoint, const ModelSpec& spec,
                  const FoldOptions& options);

}  // namespace oscar
