// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Constraints of automatic choices: what the consumer of the artifact can load, and how many bits
// there are. Sources of the table: the loaders of each runtime (export/formats names them:
// memory_pool.py of FutureMLS-Lab/OSCAR, vLLM's pull request 46774, llama.cpp's branch,
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

// The part of a cache that shares one clip ratio.
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
  // Scales are fitted to codes (linalg/scale_fit.h) and stored in bf16, for two groups where others
  // store one in float32. This is up to the writer, but no server's writer does it yet.
  bool fitted_scales = false;
  bool feedback = false;  // its writer feeds rounding errors of keys back (linalg/error_feedback.h)
  // The name in oscar-export --to; empty: no writer of its files exists yet.
  std::string_view export_target = {};

  bool operator==(const ConsumerRules&) const = default;
  bool SameAs(const ConsumerRules& other) const;  // except for consumer and names
};

const std::vector<ConsumerRules>& AllConsumers();
const ConsumerRules& RulesOf(Consumer consumer);
// Returns the consumer's name in oscar-export --to, or nothing if no writer of its files exists.
std::string_view ExportTargetOf(std::string_view consumer);

// The measure by which bits are shared out.
enum class BitPrice {
  kAttention,  // KL of attention and error of its output, where keys and values are
  kNextToken,  // KL of the next token, measured side by side (SideOption::next_token_kl)
  kUniform,    // nothing: the same bits everywhere, as far as the budget goes
};
inline constexpr BitPrice kBitPrices[] = {BitPrice::kNextToken, BitPrice::kAttention,
                                          BitPrice::kUniform};
std::string_view BitPriceName(BitPrice price);

// The cost that a search may have. Quick: only the rows at hand. Normal: passes of the model over
// its text that cost about a calibration, if bits are to be shared out. Thorough: four times the
// text, whatever the bits are.
enum class SearchEffort { kQuick, kNormal, kThorough };
std::string_view SearchEffortName(SearchEffort effort);

// A value of AutoOptions::bits: as many bits as OSCAR's 2-bit codes take with their float32 scales
// and zeros.
inline constexpr double kOscarsBits = 0;

struct AutoOptions {
  bool enabled = false;
  // The consumer of the headline choice, which is searched in depth, measured and judged. Every
  // other consumer has a choice too (OtherChoices).
  Consumer consumer = Consumer::kAny;
  // Whether pair scaling may be chosen, which every consumer loads once the checkpoint is folded.
  bool fold = true;
  // Mean bits stored per element of keys and values: codes, and a 16-bit scale and zero for each
  // quantization group; 2: codes of 2 bits, whatever those take; kOscarsBits.
  double bits = 2;
  // Whether keys may be written with error feedback for any consumer: for a server whose writer was
  // patched.
  bool feedback = false;
  // Allows a clip ratio, and bits, for each KV head if the consumer takes them.
  bool head_clip = true, head_bits = true;
  bool windows = false;  // spend bits on larger windows too; else they are only priced
  int64_t context = 0;   // tokens; keys are fitted to positions up to it; 0: DefaultContext
  int64_t refine = 0;    // steps of rotation refinement; 0: none
  SearchEffort effort = SearchEffort::kNormal;
  // The measure by which bits are shared out. None: the one that costs least over the whole cache
  // where passes measure it, otherwise attention.
  std::optional<BitPrice> price = {};
  // `any` gets a choice at each of these `bits`, beside the headline's; 2 stands for the fewest
  // that there are, those of 2-bit codes with a scale for each head. Empty: no list was given.
  std::vector<double> budgets = {};

  bool shares_bits() const;  // out to layers, sides and heads; else codes have 2 bits
  bool wide_codes() const { return bits > 4; }  // 8 bits are an option, whose scales no byte holds
};

// Returns whether one search serves both: they differ only in the budget, which is spent once all
// layers are known.
bool ShareSearch(const AutoOptions& a, const AutoOptions& b);

// Returns the name under which a choice other than the headline's is stored: "sglang", for a folded
// checkpoint "sglang+fold", at a budget "any@2.5".
std::string ChoiceName(const AutoOptions& options);

// Returns the options of the other choices of a run. First come all consumers, with folding and
// without, whose rules differ from the headline's and from earlier ones, at 2 bits; then `any` at
// each of the headline's budgets. They have the given windows and no refinement. A consumer that
// turns queries by a matrix of their own has no choice with folding: that matrix holds the scales
// that would be folded into a checkpoint.
std::vector<AutoOptions> OtherChoices(AutoOptions headline, bool latents);

// Returns the name of the choice that `consumer` loads, the headline ("auto") or one of
// OtherChoices; empty: none. If folding has nothing to give, this is the choice without folding.
inline constexpr std::string_view kHeadlineChoice = "auto";
std::string ChoiceFor(const AutoOptions& headline, bool latents, Consumer consumer, bool fold);

}  // namespace oscar
