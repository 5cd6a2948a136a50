// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of model families and of multimodal wrappers around them. A family is a function that
// maps config fields and tensor names to ModelSpec, and a row, both in the file of its lineage.
// Fields that a family does not read are judged by config_fields.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "capture/model/spec/config_reader.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

struct Family {
  std::string_view model_type;    // as in config.json
  std::string_view architecture;  // class name in "architectures"
  ModelSpec (*read)(ConfigReader& config);
  std::string_view written_as = {};  // the name that transformers 5 writes into "architectures"
                                     // instead
};

std::span<const Family> Families();  // all lineages, sorted by model_type

using Lineage = std::span<const Family>();
Lineage ArceeFamilies, CohereFamilies, DbrxFamilies, DeepSeekFamilies, ErnieFamilies,
    ExaoneFamilies, GemmaFamilies, GlmFamilies, GptFamilies, GraniteFamilies, HunYuanFamilies,
    LagunaFamilies, LlamaFamilies, MiMoFamilies, MiniMaxFamilies, MistralFamilies, OlmoFamilies,
    PhiFamilies, QwenFamilies;

// A known family that is not implemented.
struct Refusal {
  std::string_view model_type;  // as in config.json
  std::string_view reason;      // "its lightning attention is not implemented"
};

std::span<const Refusal> Refusals();  // sorted by model_type

// A model of several modalities whose text part is a family under "text_config".
struct Wrapper {
  std::string_view model_type, architecture;
  std::string_view text_model_type;  // if text_config does not name it
  std::string_view member = {};      // the parent of all this ("thinker_config")
  // The first position of text. 1: PaliGemma, where images and a prompt see each other, but text
  // alone is causal.
  int64_t first_position = 0;
  std::string_view written_as = {};  // in "architectures" of a release instead
};

std::span<const Wrapper> Wrappers();  // sorted by model_type

// Prefixes of a wrapper's tensors that text does not use.
std::span<const std::string_view> OtherModalityTensors();
// Whether a field of a wrapper describes how another modality becomes tokens.
bool IsOtherModalityField(std::string_view name);

}  // namespace oscar
