// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What automatic choices are constrained by: what the consumer of the artifact can load, and how
// many bits there are. Sources of the table: reference/upstream.md section 2, export/formats.
// Trap: names are stored in artifacts.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace oscar {

enum class Consumer { kAny, kSglang, kSglangOct, kVllm, kLlamacpp, kOnnx };

// What one clip ratio holds for.
enum class ClipScope {
  kHead,   // a KV head of one side
  kLayer,  // one side of a layer
  kSide,   // one side of all layers
  kModel,  // everything
};

struct ConsumerRules {
  Consumer consumer;
  std::string_view name;  // as --for says it: "sglang-oct"
  bool per_head;          // a rotation per KV head
  bool key_mean;          // keys may lose their mean
  bool query_matrix;      // queries may be turned by a matrix of their own
  ClipScope clip;
  bool any_bits;         // bits per layer and side; else 2 everywhere
  bool latents = false;  // caches of latent attention
};

const std::vector<ConsumerRules>& AllConsumers();
const ConsumerRules& RulesOf(Consumer consumer);

struct AutoOptions {
  bool enabled = false;
  Consumer consumer = Consumer::kAny;
  // Whether pair scaling may be chosen, which every consumer loads once the checkpoint is folded.
  bool fold = true;
  // Mean bits stored per element of keys and values: codes, and a 16-bit scale and zero for each
  // quantization group; 2: codes of 2 bits, whatever those take.
  double bits = 2;
  // Where the consumer takes it: a clip ratio for each KV head, and bits for each of them.
  bool head_clip = true, head_bits = true;
  bool windows = false;  // spend bits on larger windows too; else they are only priced
  int64_t context = 0;   // tokens; keys are fitted to positions up to it; 0: DefaultContext
  int64_t refine = 0;    // steps of rotation refinement; 0: none
};

}  // namespace oscar
