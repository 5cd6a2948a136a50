// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/families/families.h"

namespace oscar {

ModelSpec ReadLlama(ConfigReader& config);
ModelSpec ReadMistral(ConfigReader& config);
ModelSpec ReadQwen2(ConfigReader& config);
ModelSpec ReadQwen3(ConfigReader& config);

std::span<const Family> Families() {
  static constexpr Family kFamilies[] = {
      {"llama", "LlamaForCausalLM", ReadLlama},
      {"mistral", "MistralForCausalLM", ReadMistral},
      {"qwen2", "Qwen2ForCausalLM", ReadQwen2},
      {"qwen3", "Qwen3ForCausalLM", ReadQwen3},
  };
  return kFamilies;
}

}  // namespace oscar
