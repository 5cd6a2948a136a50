// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that store a KV cache, as simulators of the rows that attention reads back. A new method
// needs a file in methods/ and an entry in methods/methods.cc. Trap: reports store the names of
// methods, so the meaning of a name must never change.
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

// Query, key and value rows of calibration text in one layer, one tensor per sequence. They are for
// methods that are fitted to tokens rather than to the artifact's moments.
struct CalibrationRows {
  std::vector<at::Tensor> q;     // [tokens, num_q_heads, head_dim], after rope
  std::vector<at::Tensor> k, v;  // [tokens, num_kv_heads, dim]
};

struct CacheMethod;
struct CacheSides;
// Methods that one run adds to the table, such as rotations from a file or methods of the table
// applied to another artifact.
using GuestMethods = std::vector<std::shared_ptr<const CacheMethod>>;

// The input of methods. A validation has one context, which reads the artifact's layers on demand.
class MethodContext {
 public:
  struct Options {
    int64_t quant_group_size = 0;  // values per scale; 0: the whole head
    double k_clip = 0.96;          // for methods without their own ratios, from upstream's recipe
    double v_clip = 0.92;
    uint64_t seed = 0;  // for random rotations
    // Number of tokens that are written at once as the prefill; decoding appends later tokens one
    // by one. Some methods treat the two differently. By default, the whole sequence is prefill.
    int64_t prefill_tokens = std::numeric_limits<int64_t>::max();
    CacheWindows windows = {64, 256};  // for arms with windows
    // Returns o_proj of a layer [hidden, num_q_heads * v_head_dim]. Empty without a model.
    std::function<at::Tensor(size_t layer_index)> output_projection = {};
    GuestMethods guests = {};  // methods that arms may name, in addition to the table's
  };
  // Keeps references to `artifact` and `layers`. Adds BudgetMethods (guest_methods.h) to the guests
  // of `options`. Throws InputError if the artifact was not made for these layers.
  MethodContext(const Artifact& artifact, const std::vector<LayerSpec>& layers,
                const Options& options);

  const std::vector<LayerSpec>& layers() const { return layers_; }
  const Options& options() const { return options_; }
  const Artifact& artifact() const { return artifact_; }
  const StoredLayer& Stored(size_t layer_index) const;  // valid until a third layer is read

  // Returns the calibration rows of the current layer. Only for methods with needs_rows.
  const CalibrationRows& rows() const;
  void SetRows(CalibrationRows rows) { rows_ = std::move(rows); }
  // Returns, by sequence, the previous layer's calibration rows as read from the method's cache.
  // Only for methods with reads_layer_before; empty for the first layer.
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

// The modifiers of a method. A method with its modifiers is an arm: a configuration to be measured.
struct ArmOptions {
  bool clip = false;     // percentile clipping
  bool windows = false;  // the first and the most recent tokens stay exact
  bool bf16 = false;     // bf16 rotations, rotated windows and queries (bf16_cache.h)
  // The clip ratio of keys and values if `clip` is set; 0: the method's own ratios.
  double clip_ratio = 0;

  bool operator==(const ArmOptions&) const = default;
};

// Keys and values of one sequence, [tokens, num_kv_heads, dim] each. Keys are after rope.
struct CacheSides {
  at::Tensor k, v;
  int64_t sequence = 0;  // index in the dump or text, for methods that look up stored rows
};

// The rows of a sequence as attention reads them from the cache, in ResultType.
struct CachedRows {
  CacheSides quantized;  // as read after quantization; outliers may be exact
  // The rows as read while their tokens are in a window. Undefined if these equal the original
  // rows; a bf16 rotation makes them differ.
  CacheSides exact = {};
};

// Returns the type that methods compute in and return: float64 for float64 rows, else float32.
at::ScalarType ResultType(const at::Tensor& rows);

// The simulated cache of one layer.
struct LayerCache {
  // Takes the rows of a whole sequence, at positions 0, 1, ...
  std::function<CachedRows(const CacheSides& rows)> store;
  // The tokens that are read exactly, for any length of the cache.
  ExactTokens k_exact = {}, v_exact = {};
  // Rounds queries [rows, num_q_heads, head_dim] as this cache's kernel does. Returns them in the
  // model's space, so that logits are their products with the keys. Empty: does not round.
  std::function<at::Tensor(const at::Tensor& queries)> queries = {};
  // Replaces `store` in latent attention, where one row [tokens, 1, rank] is key and value and is
  // stored once. Without it, `store` gets the row as keys and as values, and the keys that it
  // returns are also used as values.
  using StoreOnce = std::function<CachedRows(const at::Tensor& rows)>;
  // Replaces `store` for a method that predicts rows from the previous layer. `before`: that
  // layer's rows of the same tokens, as read from its cache after quantization.
  using StoreBehind = std::function<CachedRows(const CacheSides& rows, const CacheSides& before)>;
  std::variant<std::monostate, StoreOnce, StoreBehind> otherwise = {};
};

// Bits per stored element for a sequence of some length, keys and values together.
struct CacheCost {
  double paper = 0;   // as the method's paper counts
  double actual = 0;  // as its implementation allocates
};

struct CacheMethod {
  std::string_view name;         // like "oscar_per_head"
  std::string_view description;  // one line for people
  bool null_control = false;     // a control that must not show OSCAR's gain
  bool quantizes = true;
  // Modifiers that an arm may add. A method with its own windows takes no others. Windows only set
  // k_exact and v_exact to ArmWindows. They do not change what `store` and `queries` return, so
  // arms that differ only in windows share one fit.
  bool takes_clip = true, takes_windows = true, takes_bf16 = false;
  ArmOptions as_published = {};  // the modifiers that its authors use
  std::string clip_ratios = {};  // the source of the clip ratios, for people; empty: the options
  bool needs_rows = false;       // make() reads MethodContext::rows()
  // Whether the method predicts rows from the previous layer. If so, make() reads rows_before(),
  // and all caches except the first layer's have StoreBehind. Such a method cannot store latents.
  bool reads_layer_before = false;
  // The reason why the method cannot store latents, whose rows are keys and values at once. Empty:
  // it can, and stores them like keys.
  std::string_view why_no_latents = {};
  // Makes the cache of one layer. Throws InputError if the artifact lacks what the method needs.
  std::function<LayerCache(const MethodContext&, size_t layer_index, const ArmOptions&)> make;
  std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t tokens)> cost;
  // Whether the artifact and the model have what the method needs. If not, default lists of arms
  // omit the method; instead of returning false, a guest throws InputError naming what is missing.
  // Empty: always true.
  std::function<bool(const MethodContext&)> available = {};
};

inline constexpr const char* kArtifactClipRatios = "the artifact's, layer by layer";

// Makes the cache of a layer for an arm with `method`. Its `store` writes latent rows only once.
// Throws InputError if the method cannot store the layer's latents.
LayerCache MakeLayerCache(const CacheMethod& method, const MethodContext& context,
                          size_t layer_index, const ArmOptions& options);
bool HasLatents(const MethodContext& context);

// Returns the tokens that an arm reads exactly: those in the windows of the context's options, or
// none for an arm without windows.
ExactTokens ArmWindows(const MethodContext& context, const ArmOptions& options);

std::span<const CacheMethod> CacheMethods();
// Returns the method "auto" for the choice (calibrated quantization settings) named `choice`.
// Callers rename it, except for the headline choice, which is the artifact's main one.
CacheMethod ChoiceMethod(const std::string& choice);
// Returns a method of the table or the guests. Throws UsageError for any other name.
const CacheMethod& CacheMethodNamed(std::string_view name, const GuestMethods& guests = {});

}  // namespace oscar
