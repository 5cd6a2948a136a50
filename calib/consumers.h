// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What automatic choices are constrained by: what the consumer of the artifact can load, and how
// many bits there are. Sources of the table: the loaders of each runtime (export/formats names
// them: memory_pool.py of FutureMLS-Lab/OSCAR, vLLM's pull request 46774, llama.cpp's branch,
// onnxruntime's pull request 31726).
// Names are stored in artifacts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  // Scales fitted to codes (linalg/scale_fit.h), in bf16, and of two groups where others store one
  // in float32. A writer's business, but no server's writer does it yet.
  bool fitted_scales = false;
  bool feedback = false;  // its writer feeds rounding errors of keys back (linalg/error_feedback.h)
  // oscar-export --to; empty: nothing writes its files yet.
  std::string_view export_target = {};

  bool operator==(const ConsumerRules&) const = default;
  bool SameAs(const ConsumerRules& other) const;  // but for the name
};

const std::vector<ConsumerRules>& AllConsumers();
const ConsumerRules& RulesOf(Consumer consumer);
// What oscar-export --to calls the consumer of that name; empty: nothing writes its files yet.
std::string_view ExportTargetOf(std::string_view consumer);

// What bits are shared out by.
enum class BitPrice {
  kAttention,  // KL of attention and error of its output, where keys and values are
  kNextToken,  // KL of the next token, measured side by side (SideOption::next_token_kl)
  kUniform,    // nothing: the same bits everywhere, as far as the budget goes
};
inline constexpr BitPrice kBitPrices[] = {BitPrice::kNextToken, BitPrice::kAttention,
                                          BitPrice::kUniform};
std::string_view BitPriceName(BitPrice price);

// How much a search may cost: nothing but the rows at hand; passes of the model over its text
// that together cost about a calibration, where bits are to be shared out; four times the text,
// whatever the bits are.
enum class SearchEffort { kQuick, kNormal, kThorough };
std::string_view SearchEffortName(SearchEffort effort);

// Of AutoOptions::bits: as many as OSCAR's codes of 2 bits take with their float32 scales and
// zeros.
inline constexpr double kOscarBytes = 0;

struct AutoOptions {
  bool enabled = false;
  // Whose choice is searched in depth, measured and judged: the headline. Every other consumer has
  // one too (OtherChoices).
  Consumer consumer = Consumer::kAny;
  // Whether pair scaling may be chosen, which every consumer loads once the checkpoint is folded.
  bool fold = true;
  // Mean bits stored per element of keys and values: codes, and a 16-bit scale and zero for each
  // quantization group; 2: codes of 2 bits, whatever those take; kOscarBytes.
  double bits = 2;
  // Keys may be written with error feedback whoever the consumer is: for a server whose writer was
  // patched.
  bool feedback = false;
  // Where the consumer takes it: a clip ratio for each KV head, and bits for each of them.
  bool head_clip = true, head_bits = true;
  bool windows = false;  // spend bits on larger windows too; else they are only priced
  int64_t context = 0;   // tokens; keys are fitted to positions up to it; 0: DefaultContext
  int64_t refine = 0;    // steps of rotation refinement; 0: none
  SearchEffort effort = SearchEffort::kNormal;
  // What bits are shared out by. None: by what is least as a whole cache, where passes measure it,
  // else by attention.
  std::optional<BitPrice> price = {};
  // `any` gets a choice at each of these `bits`, beside the headline's; 2 stands for the fewest
  // that there are, those of 2-bit codes with a scale for each head. Empty: no list was given.
  std::vector<double> budgets = {};

  bool shares_bits() const;  // out to layers, sides and heads; else codes have 2 bits
  bool wide_codes() const { return bits > 4; }  // 8 bits are an option, whose scales no byte holds
};

// Whether one search serves both: they differ in the budget alone, which is spent once all layers
// are known.
bool ShareSearch(const AutoOptions& a, const AutoOptions& b);

// The name that a choice other than the headline's is stored under: "sglang", of a folded
// checkpoint "sglang+fold", at a budget "any@2.5".
std::string ChoiceName(const AutoOptions& options);

// What the other choices of a run are made under: of every consumer, with folding and without, that
// has other rules than the headline and than those before it, with 2 bits; then of `any` at each of
// the headline's budgets. They have the windows given and no refinement. A consumer that turns
// queries by a matrix of their own has no choice with folding: that matrix holds the scales which a
// checkpoint would be folded with.
std::vector<AutoOptions> OtherChoices(AutoOptions headline, bool latents);

// Of those and the headline the one whose choice `consumer` loads, by its name; empty where there
// is none, without folding where folding has nothing to give. The headline is "auto".
inline constexpr std::string_view kHeadlineChoice = "auto";
std::string ChoiceFor(const AutoOptions& headline, bool latents, Consumer consumer, bool fold);

}  // namespace oscar
