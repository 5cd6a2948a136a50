// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A way to store a KV cache, as a simulator of what attention reads back. A new method is one file
// in methods/ and a name in methods/methods.cc. Trap: names are stored in reports and never change
// their meaning.
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

// Query, key and value rows of calibration text in one layer, with a tensor per sequence. For
// methods that are fitted to tokens instead of the artifact's moments.
struct CalibrationRows {
  std::vector<at::Tensor> q;     // [tokens, num_q_heads, head_dim], after rope
  std::vector<at::Tensor> k, v;  // [tokens, num_kv_heads, dim]
};

struct CacheMethod;
struct CacheSides;
// Methods that a run adds to the table: rotations from a file, or methods of the table applied to
// another artifact.
using GuestMethods = std::vector<std::shared_ptr<const CacheMethod>>;

// The input of methods. A validation has one, which reads layers of the artifact on demand.
class MethodContext {
 public:
  struct Options {
    int64_t quant_group_size = 0;  // values per scale; 0: the whole head
    double k_clip = 0.96;          // for methods without their own ratios, from upstream's recipe
    double v_clip = 0.92;
    uint64_t seed = 0;  // for random rotations
    // Tokens of a sequence that are written at once, before decoding appends tokens singly. Matters
    // for methods whose prefill differs from decoding. By default the whole sequence is a prefill.
    int64_t prefill_tokens = std::numeric_limits<int64_t>::max();
    CacheWindows windows = {64, 256};  // for arms with windows
    // Returns o_proj of a layer [hidden, num_q_heads v_head_dim]. Empty without a model.
    std::function<at::Tensor(size_t layer_index)> output_projection = {};
    GuestMethods guests = {};  // methods that arms may name, in addition to the table's
  };
  // Keeps references. Guests are those of `options` and BudgetMethods (guest_methods.h). Throws
  // InputError if the artifact was not made for these layers.
  MethodContext(const Artifact& artifact, const std::vector<LayerSpec>& layers,
                const Options& options);

  const std::vector<LayerSpec>& layers() const { return layers_; }
  const Options& options() const { return options_; }
  const Artifact& artifact() const { return artifact_; }
  const StoredLayer& Stored(size_t layer_index) const;  // valid until a third layer is read

  // Returns the calibration rows of the current layer. Only for methods with needs_rows.
  const CalibrationRows& rows() const;
  void SetRows(CalibrationRows rows) { rows_ = std::move(rows); }
  // Returns the calibration rows of the previous layer as the method's cache of that layer returned
  // them, by sequence. Only for methods with reads_layer_before; empty for the first layer.
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
  bool bf16 = false;     // bf16 rotations, rotated windows and queries (bf16_cache.h)
  // The clip ratio for both sides of an arm that clips; 0: the method's own ratios.
  double clip_ratio = 0;

  bool operator==(const ArmOptions&) const = default;
};

// Both sides of one sequence, [tokens, num_kv_heads, dim] each. Keys are after rope.
struct CacheSides {
  at::Tensor k, v;
  int64_t sequence = 0;  // index in the dump or text, for methods that look up stored rows
};

// The rows of a sequence as attention reads them from the cache, in ResultType.
struct CachedRows {
  CacheSides quantized;  // as read once quantized; outliers may be exact
  // The rows as read while their tokens are in a window, if they differ from the original rows (for
  // example, rotated in bf16). Otherwise undefined tensors.
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
  // Returns queries [rows, num_q_heads, head_dim] rounded as this cache's kernel does, in the
  // model's space, so that logits are queries * keys. Empty: queries are unchanged.
  std::function<at::Tensor(const at::Tensor& queries)> queries = {};
  // For latent attention, where one row [tokens, 1, rank] is both key and value: replaces `store`
  // for a row that is stored once. Without it the values are the keys that `store` returns.
  using StoreOnce = std::function<CachedRows(const at::Tensor& rows)>;
  // Replaces `store` for a method that reads the previous layer. `before`: the previous layer's
  // rows of the same tokens, as its cache returns them once they are quantized.
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
  bool null_control = false;     // a control that must not gain as OSCAR does
  bool quantizes = true;
  // Modifiers that an arm may add. A method with windows of its own takes none. Windows only set
  // both sides' exact tokens to ArmWindows. They do not change the results of `store` and
  // `queries`, so arms that differ only in windows share one fit.
  bool takes_clip = true, takes_windows = true, takes_bf16 = false;
  ArmOptions as_published = {};  // the modifiers that its authors use
  std::string clip_ratios = {};  // the source of the clip ratios, for people; empty: the options
  bool needs_rows = false;       // make() reads MethodContext::rows()
  // The method needs the caches of the previous layer: make() reads rows_before(), and the caches
  // of all layers except the first have StoreBehind. Such a method cannot store latents.
  bool reads_layer_before = false;
  // Why the method cannot store latents, where keys and values are one row. Empty: it can, and
  // stores that row like keys.
  std::string_view why_no_latents = {};
  // Makes the cache of one layer. Throws InputError if the artifact lacks what the method needs.
  std::function<LayerCache(const MethodContext&, size_t layer_index, const ArmOptions&)> make;
  std::function<CacheCost(const MethodContext&, const ArmOptions&, int64_t tokens)> cost;
  // Whether artifact and model have what the method needs. If not, default lists leave it out, and
  // a guest throws InputError that says what is missing. Empty: always true.
  std::function<bool(const MethodContext&)> available = {};
};

inline constexpr const char* kArtifactClipRatios = "the artifact's, layer by layer";

// Makes the cache of a layer for an arm with `method`, so that latent rows are stored once.
LayerCache MakeLayerCache(const CacheMethod& method, const MethodContext& context,
                          size_t layer_index, const ArmOptions& options);
bool HasLatents(const MethodContext& context);

// Returns the tokens that both sides of an arm with windows read exactly, according to the
// context's options. None for an arm without windows.
ExactTokens ArmWindows(const MethodContext& context, const ArmOptions& options);

std::span<const CacheMethod> CacheMethods();
// Returns the method "auto" for a choice other than the headline's, under that choice's name.
CacheMethod ChoiceMethod(const std::string& choice);
// Returns a method of the table or the guests. Throws UsageError for any other name.
const CacheMethod& CacheMethodNamed(std::string_view name, const GuestMethods& guests = {});

}  // namespace oscar
