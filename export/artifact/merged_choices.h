// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choices of an artifact made again from moments, without a model: the recipes, clip
// ratios and bits that were chosen on rows stand as they are; their matrices are fitted again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calib/job/layer_result.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

class MergedChoices {
 public:
  // Of an artifact that has_choices(). Scores are what its own rows said of its own fits; of the
  // choices other than the headline's they are means over layers.
  explicit MergedChoices(const Artifact& from);

  const AutoOptions& options() const { return options_; }
  // What these moments do not do for, a sentence each, and what is made instead. Throws InputError
  // where nothing can be.
  std::vector<std::string> NotMadeAgain(const LayerMoments& moments) const;
  // Puts the choices into a layer, fitted to its moments. Throws NumericalError where a recipe has
  // no fit to them.
  void Fit(LayerResult& layer) const;

 private:
  struct OfLayer {
    int layer_id = 0;
    std::vector<AutoChoice> choices;  // the headline's, and those of OtherChoices; no matrices
  };
  const OfLayer& Layer(int layer_id) const;

  AutoOptions options_;
  std::vector<OfLayer> layers_;
};

}  // namespace oscar
