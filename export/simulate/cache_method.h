// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every way to store a KV cache that can be compared, as a simulator of what attention reads back.
// A new method is one file in this folder and a row in cache_method.cc. Trap: names are stored in
// reports and never change their meaning.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/model/model_spec.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

// What methods are made of. One per validation; reads layers of the artifact as they are asked for.
class MethodContext {
 public:
  struct Options {
    int64_t quant_group_size = 0;  // values per scale; 0: the whole head
    double k_clip = 0.96;  // of methods that bring no ratios of their own; upstream's recipe
    double v_clip = 0.92;
    uint64_t seed = 0;  // of random rotations
  };
  // References are kept. Throws InputError if the artifact was not made for these layers.
  MethodContext(const Artifact& artifact, const std::vector<LayerSpec>& layers,
                const Options& options);

  const std::vector<LayerSpec>& layers() const { return layers_; }
  const Options& options() const { return options_; }
  const Artifact& artifact() const { return artifact_; }
  const StoredLayer& Stored(size_t layer_index) const;  // valid until a third layer is asked for

 private:
  const Artifact& artifact_;
  const std::vector<LayerSpec>& layers_;
  Options options_;
  mutable std::map<size_t, StoredLayer> stored_;
};

// Rows [tokens, num_kv_heads, dim] to what the cache gives back for them; float64 stays float64,
// anything else comes back as float32.
using RowsThroughCache = std::function<at::Tensor(const at::Tensor& rows)>;
struct LayerCache {
  RowsThroughCache k, v;
};

struct CacheMethod {
  std::string_view name;         // "oscar_per_head"
  std::string_view description;  // one line for people
  bool null_control = false;     // there to show that the measurement can tell the difference
  double payload_bits = 2;       // per element
  double metadata_bits = 32;     // per quantization group, in 16-bit numbers as papers count
  // The caches of one layer. Throws InputError where the artifact lacks what the method needs.
  std::function<LayerCache(const MethodContext&, size_t layer_index, bool clip)> make;
  // Whether artifact and model have what the method needs; a default list leaves out the others.
  std::function<bool(const MethodContext&)> available;
};

std::span<const CacheMethod> CacheMethods();
const CacheMethod& CacheMethodNamed(std::string_view name);  // UsageError listing them

}  // namespace oscar
