// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// GLM-5 and DeepSeek-V3.2: latent attention in which an indexer picks index_topk keys for each
// query. Up to that many tokens every key is picked and attention is dense. Longer sequences would
// not be dense and are refused instead of being computed wrongly.
#include <algorithm>

#include "capture/model/families/latent_decoder.h"

namespace oscar {

ModelSpec ReadGlmMoeDsa(ConfigReader& config) {
  constexpr std::string_view kIndexed = "indexed_attention";  // from transformers 5.24
  (void)ReadLayerTypes(config, {kIndexed, "deepseek_sparse_attention"},
                       [=](int64_t) { return kIndexed; });
  const int64_t most = config.OptionalSize("index_topk").value_or(2048);
  // The parts of the indexer, which has no role in dense attention.
  for (const char* key :
       {"index_head_dim", "index_n_heads", "indexer_types", "index_topk_freq", "index_topk_pattern",
        "index_skip_topk_offset", "indexer_rope_interleave", "index_share_for_mtp_iteration"}) {
    (void)config.Find(key);
  }
  config.Default("routed_scaling_factor", 2.5);
  ModelSpec spec = ReadLatentDecoder(config, 3);
  if (most < spec.max_positions) {
    spec.max_positions = most;
    spec.positions_limit = "index_topk: beyond it attention is sparse, which is not implemented";
  }
  for (const char* name : {"wq_b.weight", "wk.weight", "k_norm.weight", "k_norm.bias",
                           "weights_proj.weight", "wq_b.weight_scale_inv", "wk.weight_scale_inv"}) {
    spec.skipped_suffixes.push_back(std::string(".self_attn.indexer.") + name);
  }
  return spec;
}

}  // namespace oscar
