// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --self-generate of oscar-calibrate (calib/run/self_generation.h): options, prompts from the data,
// and progress while the model writes. Trap: artifacts store the keys and values of these options,
// so no key or meaning may change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "calib/run/self_generation.h"
#include "tools/cli/command.h"
#include "tools/input/model_input.h"

namespace oscar {

struct SelfGenerateArguments {
  int64_t tokens = 0;
  int64_t length = 1024;
  double temperature = 0;
  double top_p = 1;
  int64_t seed = 0;
  bool stream = false;
};
void AddSelfGenerateOptions(OptionTable& table, SelfGenerateArguments* self);

// Prepares the model and its prompts. `input` must outlive the result.
SelfGeneration PrepareSelfGeneration(const SelfGenerateArguments& self, const DataArguments& data,
                                     const ModelInput& input, at::Device device,
                                     at::ScalarType dtype);

// Returns the bytes that generation may use: `device_limit` on a GPU, free memory on a CPU.
uint64_t SelfGenerationLimit(at::Device device, uint64_t device_limit);

// Writes the documents, or reads them from the job.
SelfGenerated WriteDocuments(const SelfGeneration& model, const std::filesystem::path& job,
                             uint64_t limit, const ModelInput& input, CommandContext& context);
// Writes or reads them like WriteDocuments, and stores them in input->data.
void SelfGenerate(const SelfGeneration& model, const std::filesystem::path& job, uint64_t limit,
                  CommandContext& context, ModelInput* input);

// Returns a line that says whether the model could write text.
std::string SelfGenerationFact(const ModelSpec& spec, at::ScalarType dtype, uint64_t limit);

// For --dry-run and doctor: puts placeholders into input->data, and returns lines about the cost.
std::string PlanSelfGenerate(const SelfGeneration& model, uint64_t limit, ModelInput* input);

}  // namespace oscar
