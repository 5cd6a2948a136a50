// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a validation of the bundled model on its evaluation text.
#pragma once

#include "export/validate/validate.h"
#include "tests/export/validate/tiny_artifact.h"

namespace oscar {

inline ValidationOptions QuickOptions(std::vector<std::string> arms) {
  ValidationOptions options;
  options.arms = std::move(arms);
  options.rows_per_sequence = 64;
  options.resamples = 50;
  return options;
}

inline Json ValidateTiny(const std::filesystem::path& artifact, const ValidationOptions& options,
                         at::Device device = at::kCPU, int64_t length = 768,
                         const TinyModel& model = TinyModel()) {
  return ValidateModel(model.checkpoint, model.spec, device, at::kFloat,
                       {.texts = TinyTexts(1, 2, length), .needles = {}}, Artifact::Open(artifact),
                       options, {});
}

inline const Json& ArmOf(const Json& validation, const std::string& name) {
  for (const Json& arm : validation.at("arms")) {
    if (arm.at("name") == name) return arm;
  }
  throw std::runtime_error("no arm " + name);
}

inline double Kl(const Json& validation, const std::string& arm, const char* mode = "local") {
  return ArmOf(validation, arm).at(mode).at("kl").at("mean").get<double>();
}

}  // namespace oscar
