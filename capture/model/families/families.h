// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of model families and of multimodal wrappers around them. A family consists of a table
// row and a function that maps config fields and tensor names to a ModelSpec. Related families
// share a file. config_fields.h says what happens to fields that a family does not read.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "capture/model/spec/config_reader.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

struct Family {
  std::string_view model_type;    // value in config.json
  std::string_view architecture;  // class name in "architectures"
  ModelSpec (*read)(ConfigReader& config);
  std::string_view written_as = {};  // name that transformers 5 writes into "architectures" instead
};

std::span<const Family> Families();  // all lineages, sorted by model_type

using Lineage = std::span<const Family>();
Lineage ArceeFamilies, CohereFamilies, DbrxFamilies, DeepSeekFamilies, ErnieFamilies,
    ExaoneFamilies, GemmaFamilies, GlmFamilies, GptFamilies, GraniteFamilies, HunYuanFamilies,
    LagunaFamilies, LlamaFamilies, MiMoFamilies, MiniMaxFamilies, MistralFamilies, OlmoFamilies,
    PhiFamilies, QwenFamilies;

// A known family that is not implemented.
struct Refusal {
  std::string_view model_type;  // value in config.json
  std::string_view reason;      // "its lightning attention is not implemented"
};

std::span<const Refusal> Refusals();  // sorted by model_type

// A multimodal model whose "text_config" describes a model of one of the families.
struct Wrapper {
  std::string_view model_type, architecture;
  std::string_view text_model_type;  // used if text_config does not name a family
  std::string_view member = {};      // field that contains the wrapper ("thinker_config")
  // The position of the first text token. It is 1 for PaliGemma. (There, an image and its prompt
  // attend in both directions, but text alone is causal.)
  int64_t first_position = 0;
  std::string_view written_as = {};  // alternative name in "architectures"
};

std::span<const Wrapper> Wrappers();  // sorted by model_type

// Prefixes of a wrapper's tensors that text does not use.
std::span<const std::string_view> OtherModalityTensors();
// Whether a field of a wrapper describes how another modality is converted to tokens.
bool IsOtherModalityField(std::string_view name);

}  // namespace oscar
