// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the automatic choices of an artifact again from moments, without a model. Recipes, clip
// ratios and bits that were chosen on rows are kept; their matrices are fitted again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calib/job/layer_result.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

class MergedChoices {
 public:
  // `from` must have choices. Their scores are copied from it, so they describe its rows and its
  // fits, not the merged ones. For choices other than the headline's, the scores are means over
  // layers.
  explicit MergedChoices(const Artifact& from);

  const AutoOptions& options() const { return options_; }
  // Returns a sentence for each choice that these moments cannot reproduce, with its replacement.
  // Throws InputError if there is no replacement.
  std::vector<std::string> NotMadeAgain(const LayerMoments& moments) const;
  // Puts the choices into a layer, fitted to its moments. Throws NumericalError if a recipe cannot
  // be fitted to them.
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
