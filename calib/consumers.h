// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Constraints on automatic choices: what a consumer (a serving runtime that loads the export)
// supports, and the bits available. The table follows the loaders of the runtimes, which
// export/formats names: memory_pool.py of FutureMLS-Lab/OSCAR, vLLM's pull request 46774,
// llama.cpp's branch, onnxruntime's pull request 31726. Names are stored in artifacts.
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
  kHead,   // one side of a KV head
  kLayer,  // one side of a layer
  kSide,   // one side of all layers
  kModel,  // both sides of all layers
};

struct ConsumerRules {
  Consumer consumer;
  std::string_view name;  // name in --for: "sglang-oct"
  bool per_head;          // a rotation per KV head
  bool key_mean;          // the mean of keys may be subtracted
  bool query_matrix;      // queries may have their own matrix
  ClipScope clip;
  bool any_bits;         // bits per layer and side; otherwise 2 bits everywhere
  bool latents = false;  // supports latent attention
  // Whether scales may be fitted to codes (linalg/scale_fit.h) and stored in bf16, where two groups
  // take the space of one with float32 scales. Only the writer must support this, and no server's
  // writer does yet.
  bool fitted_scales = false;
  bool feedback = false;  // its writer feeds back errors of keys (linalg/error_feedback.h)
  // The name in oscar-export --to; empty: oscar cannot write its files yet.
  std::string_view export_target = {};

  bool operator==(const ConsumerRules&) const = default;
  bool SameAs(const ConsumerRules& other) const;  // ignores the consumer and the names
};

const std::vector<ConsumerRules>& AllConsumers();
const ConsumerRules& RulesOf(Consumer consumer);
// Returns the consumer's name in oscar-export --to, or nothing if oscar cannot write its files yet.
std::string_view ExportTargetOf(std::string_view consumer);

// The measure by which bits are allocated.
enum class BitPrice {
  kAttention,  // local: KL of attention for keys, error of its output for values
  kNextToken,  // KL of the next token, measured per side (SideOption::next_token_kl)
  kUniform,    // none: the same bits everywhere, as far as the budget allows
};
inline constexpr BitPrice kBitPrices[] = {BitPrice::kNextToken, BitPrice::kAttention,
                                          BitPrice::kUniform};
std::string_view BitPriceName(BitPrice price);

// How much a search may cost. Quick: uses only the sampled rows. Normal: if bits are allocated
// under a budget, also runs the model over calibration text, which costs about as much as a
// calibration. Thorough: always runs the model, over four times as much text.
enum class SearchEffort { kQuick, kNormal, kThorough };
std::string_view SearchEffortName(SearchEffort effort);

// A value of AutoOptions::bits: as many bits as OSCAR's 2-bit codes with float32 scales and zeros.
inline constexpr double kOscarsBits = 0;

struct AutoOptions {
  bool enabled = false;
  // The consumer of the headline choice, which is the one that is searched in depth, measured and
  // judged. All other consumers also get a choice (OtherChoices).
  Consumer consumer = Consumer::kAny;
  // Whether pair scaling may be chosen. Every consumer can load it once the checkpoint is folded.
  bool fold = true;
  // Mean bits stored per element of keys and values, including the 16-bit scale and zero of each
  // quantization group. 2: codes of 2 bits, however many bits their metadata takes. kOscarsBits:
  // see above.
  double bits = 2;
  // Whether keys may be written with error feedback for every consumer, because the server's writer
  // was patched to do so.
  bool feedback = false;
  // Whether each KV head may have its own clip ratio, and its own bits, if the consumer takes them.
  bool head_clip = true, head_bits = true;
  bool windows = false;  // whether larger windows may use the budget; if not, they are only priced
  int64_t context = 0;   // tokens over which positions of keys are spread; 0: DefaultContext
  int64_t refine = 0;    // steps of rotation refinement; 0: none
  SearchEffort effort = SearchEffort::kNormal;
  // The measure by which bits are allocated. None: if the model is run, the measure whose plan
  // costs the next token least; otherwise attention.
  std::optional<BitPrice> price = {};
  // `any` also gets a choice at each of these values of `bits`. 2 stands for the fewest possible
  // bits: 2-bit codes with one scale per head. Empty: no list was given.
  std::vector<double> budgets = {};

  bool shares_bits() const;  // over layers, sides and heads; if not, codes have 2 bits
  bool wide_codes() const { return bits > 4; }  // 8-bit options need more than byte scales
};

// Returns whether one search serves both `a` and `b`. They must differ only in the budget, which is
// spent after all layers are known.
bool ShareSearch(const AutoOptions& a, const AutoOptions& b);

// Returns the name under which a choice other than the headline is stored: for example "sglang",
// "sglang+fold" for a folded checkpoint, or "any@2.5" for a budget of 2.5 bits.
std::string ChoiceName(const AutoOptions& options);

// Returns the options of all choices of a run except the headline. First, each consumer gets one
// choice at 2 bits without folding and one with folding. A choice is left out if its rules equal
// those of the headline or of an earlier choice. Then `any` gets one choice for each of the
// headline's budgets that is not covered yet. These choices do not change windows, use patched
// feedback or refine.
// A consumer with `query_matrix` gets no choice with folding: its matrix already contains the
// scales that folding would put into the checkpoint.
std::vector<AutoOptions> OtherChoices(AutoOptions headline, bool latents);

// Returns the name of the choice that `consumer` loads: the headline ("auto") or one of
// OtherChoices; empty: there is none. If folding gains nothing, this is the choice without folding.
inline constexpr std::string_view kHeadlineChoice = "auto";
std::string ChoiceFor(const AutoOptions& headline, bool latents, Consumer consumer, bool fold);

}  // namespace oscar
