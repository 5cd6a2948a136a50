// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fits an artifact's automatic choices again to other moments, without a model. Recipes, clip
// ratios and bits, which were chosen on sampled rows, are kept; only the matrices are fitted again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calib/job/layer_result.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

class MergedChoices {
 public:
  // `from` must have choices. Scores are copied from it, so they describe its rows and its fits,
  // not the merged ones. Choices other than the headline get its means over layers as scores.
  explicit MergedChoices(const Artifact& from);

  const AutoOptions& options() const { return options_; }
  // Returns a sentence for each choice that cannot be reproduced from these moments, saying what
  // replaces it. Throws InputError if nothing can.
  std::vector<std::string> NotMadeAgain(const LayerMoments& moments) const;
  // Puts the choices into a layer, fitted to the layer's moments. Throws NumericalError if a recipe
  // cannot be fitted to them.
  void Fit(LayerResult& layer) const;

 private:
  struct OfLayer {
    int layer_id = 0;
    std::vector<AutoChoice> choices;  // headline's, then OtherChoices'; without matrices
  };
  const OfLayer& Layer(int layer_id) const;

  AutoOptions options_;
  std::vector<OfLayer> layers_;
};

}  // namespace oscar
