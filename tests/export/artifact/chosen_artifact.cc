// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/artifact/chosen_artifact.h"

#include "calib/choose/layer_plan.h"
#include "calib/job/refit_layer.h"
#include "export/artifact/artifact_writer.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/sample_artifact.h"

namespace oscar {

void WriteChosenArtifact(const std::filesystem::path& path,
                         const std::vector<SampleRecipe>& recipes, const AutoOptions& options,
                         const std::function<LayerMoments(int)>& moments) {
  ArtifactInfo info = SampleInfo();
  info.automatic = options;
  WriteArtifact(path, info, {recipes.size(), [&](size_t i) {
                               const LayerMoments of = moments(static_cast<int>(i));
                               LayerResult layer = RefitLayer(of, {}, {});
                               layer.automatic = SampleChoice(of, recipes[i]);
                               // All consumers get the same choice.
                               layer.other_choices.assign(OtherChoices(options, false).size(),
                                                          layer.automatic);
                               return layer;
                             }});
}

void WriteChosenArtifact(const std::filesystem::path& path,
                         const std::vector<SampleRecipe>& recipes, const AutoOptions& options) {
  WriteChosenArtifact(path, recipes, options,
                      [](int id) { return SampleMoments(id, 60, 4 + static_cast<unsigned>(id)); });
}

double StoredBits(const std::vector<SampleRecipe>& recipes, double code_bits) {
  std::vector<LayerElements> elements;
  for (const SampleRecipe& recipe : recipes)
    elements.push_back(ElementsOf(2, 8, 4, {recipe.quant_group_size}));
  return LeastStoredBits(elements) - 2 + code_bits;
}

}  // namespace oscar
