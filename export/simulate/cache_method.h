// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every way to store a KV cache that can be compared, as a simulator of what attention reads back.
// A new method is one file in methods/, a declaration in methods/methods.h and a row in
// methods/methods.cc. Trap: names are stored in reports and never change their meaning.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "calib/cache/exact_tokens.h"
#include "capture/model/spec/model_spec.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

// Query, key and value rows of calibration text as they passed through one layer, a tensor per
// sequence: for methods that are fitted to tokens rather than to the artifact's moments.
struct CalibrationRows {
  std::vector<at::Tensor> q;     // [tokens, num_q_heads, head_dim], after rope
  std::vector<at::Tensor> k, v;  // [tokens, num_kv_heads, dim]
};

struct CacheMethod;
struct CacheSides;
// Methods that a run adds to the table's: rotations from a file, or those of another artifact.
using GuestMethods = std::vector<std::shared_ptr<const CacheMethod>>;

// The input of methods. One per validation; reads layers of the artifact on demand.
class MethodContext {
 public:
  struct Options {
    int64_t quant_group_size = 0;  // values per scale; 0: the whole head
    double k_clip = 0.96;  // of methods that bring no ratios of their own; upstream's recipe
    double v_clip = 0.92;
    uint64_t seed = 0;  // of random rotations
    // Tokens of a sequence that are written at once, before decoding appends one at a time: what
    // methods that write differently then hold. The default is a prefill of any length.
    int64_t prefill_tokens = std::numeric_limits<int64_t>::max();
    CacheWindows windows = {64, 256};  // of arms with windows
    // o_proj of a layer [hidden, num_q_heads v_head_dim] where there is a model; else empty.
    std::function<at::Tensor(size_t layer_index)> output_projection = {};
    GuestMethods guests = {};  // that arms may name
  };
  // References are kept; guests are the options' and BudgetMethods (guest_methods.h). Throws
  // InputError if the artifact was not made for these layers.
  MethodContext(const Artifact& artifact, const std::vector<LayerSpec>& layers,
                const Options& options);

  const std::vector<LayerSpec>& layers() const { return layers_; }
  const Options& options() const { return options_; }
  const Artifact& artifact() const { return artifact_; }
  const StoredLayer& Stored(size_t layer_index) const;  // valid until a third layer is asked for

  // The rows of the layer whose caches are being made; only for methods with needs_rows.
  const CalibrationRows& rows() const;
  void SetRows(CalibrationRows rows) { rows_ = std::move(rows); }
  // These rows as the method's cache of the layer before gives them back, by sequence. Only for
  // methods with reads_layer_before; empty for the first layer.
  std::span<const CacheSides> rows_before() const { return rows_before_; }
  void SetRowsBefore(std::span<const CacheSides> rows) { rows_before_ = rows; }

 private:
  const Artifact& artifact_;
  const std::vector<LayerSpec>& layers_;
  Options options_;
  CalibrationRows rows_;
  std::span<const CacheSides> rows_before_;
  mutable std::map<size_t, StoredLayer> stored_;
};

// The modifiers that an arm adds to its method.
struct ArmOptions {
  bool clip = false;     // percentile clipping
  bool windows = false;  // the first and the most recent tokens stay exact
  bool bf16 = false;     // rotations, rotated windows and queries in bf16 (bf16_cache.h)
  // For an arm that clips: the ratio of both sides; 0: the method's own ratios.
  double clip_ratio = 0;

  bool operator==(const ArmOptions&) const = default;
};

// Both sides of one sequence, [tokens, num_kv_heads, dim] each; keys after rope.
struct CacheSides {
  at::Tensor k, v;
  int64_t sequence = 0;  // of the dump or text; for methods that look up what they give back
};

// The rows of a sequence as attention reads them from the cache, in ResultType.
struct CachedRows {
  CacheSides quantized;  // once the token is quantized; exact rows where a method keeps outliers
  // The row while the token is in a window, if that differs from the row as it came (rotated in
  // bf16, say); undefined tensors otherwise.
  CacheSides exact = {};
};

// The type that methods compute in and answer with: float64 for float64 rows, else float32.
at::ScalarType ResultType(const at::Tensor& rows);

// The simulated cache of one layer.
struct LayerCache {
  // Rows of a whole sequence, positions 0, 1, ...
  std::function<CachedRows(const CacheSides& rows)> store;
  // Which tokens are read exactly, at any length of the cache.
  ExactTokens k_exact = {}, v_exact = {};
  // Queries [rows, num_q_heads, head_dim] as this cache's kernel uses them, if it rounds them;
  // empty: unchanged. They are in the model's space, so that logits are queries * keys.
  std::function<at::Tensor(const at::Tensor& queries)> queries = {};
  // For latent attention, where one row [tokens, 1, rank] is key and value: `store` of a row that
  // is stored once. Without it the values are the keys that `store` gives back.
  using StoreOnce = std::function<CachedRows(const at::Tensor& rows)>;
  // For a method that reads the layer before, instead of `store`: `before` holds the same tokens as
  // that layer's cache gives them back once they are quantized.
  using StoreBehind = std::function<CachedRows(const CacheSides& rows, const CacheSides& before)>;
  std::variant<std::monostate, StoreOnce, StoreBehind> otherwise = {};
};

// Bits per stored element of a sequence of some length, keys and values together.
struct CacheCost {
  double paper = 0;   // as the method's paper counts
  double actual = 0;  // bytes that its implementation allocates
};

struct CacheMethod {
  std::string_view name;         // "oscar_per_head"
  std::string_view description;  // one line for people
  bool null_control = false;     // there to show that the measurement can tell the difference
  bool quantizes = true;
  // Modifiers that an arm may add. A method with windows of its own takes none. Windows set both
  // sides' exact tokens to ArmWindows and change nothing else: what `store` and `queries` give is
  // the same with and without, so that arms which differ in windows alone share one fit.
  bool takes_clip = true, takes_windows = true, takes_bf16 = false;
  ArmOptions as_published = {};  // the modifiers that its authors use
  std::string clip_ratios = {};  // whose ratios clip, for people; empty: those of the options
  bool needs_rows = false;       // make() reads MethodContext::rows()
  // A layer's cache is read through that of the layer before: make() reads rows_before(), and the
  // caches of all layers but the first have StoreBehind. Such a method cannot store latents.
  bool reads_layer_before = false;
  // Why the method has no form for latent attention, where keys and values are one row. Empty: it
  // has one, and stores that row as it stores keys.
  std::string_view why_no_latents = {};
  // The caches of one layer. Throws InputError where the artifact lacks what the method needs.
  std::function<LayerCache(const MethodContext&, size_t layer_index, const ArmOptions&)> make;
  std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t tokens)> cost;
  // Whether artifact and model have what the method needs. A default list leaves out the others; a
  // guest throws InputError that says what is missing. Empty: always.
  std::function<bool(const MethodContext&)> available = {};
};

inline constexpr const char* kArtifactClipRatios = "the artifact's, layer by layer";

// The cache of a layer as an arm has it; `method` makes it, and latent rows are stored once.
LayerCache MakeLayerCache(const CacheMethod& method, const MethodContext& context,
                          size_t layer_index, const ArmOptions& options);
bool HasLatents(const MethodContext& context);

// The tokens that both sides of an arm with windows read exactly, by the context's options; none
// for an arm without windows.
ExactTokens ArmWindows(const MethodContext& context, const ArmOptions& options);

std::span<const CacheMethod> CacheMethods();
// The method "auto" of another choice in the artifact than the headline's, by that choice's name.
CacheMethod ChoiceMethod(const std::string& choice);
// Returns the method of that name from the table or the guests; throws UsageError for other names.
const CacheMethod& CacheMethodNamed(std::string_view name, const GuestMethods& guests = {});

}  // namespace oscar
