// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/removed_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace oscar {
namespace {

// Flags, option values and methods share this table. It is only read after a failed lookup, because
// a name may still exist elsewhere ("optr" is a method, but no longer a format).
struct RemovedNames {
  std::string_view names;  // separated by single spaces
  std::string_view instead;
};

constexpr RemovedNames kRemoved[] = {
    {"--served",
     "start the server with the checkpoint and read its log; oscar-export --inspect shows what a "
     "file contains"},
    {"--allow-unknown-config", "use --unknown-config ignore, or check (the default)"},
    {"--fisher", "KVQuant's levels are now fitted with equal weights for all rows"},
    {"oci:", "publish to hf:DIR or to a directory, which any web server or object store can serve"},
    {"ik-llama kvtuner vllm-skip-layers",
     "use trtllm or modelopt, which write per-layer types; oscar-export --inspect prints the bits "
     "of an artifact"},
    {"int2 int4 int8", "the types are now nvfp4 and fp8; calibrate again with --for modelopt"},
    {"nvfp4-mla-scales", "use sglang-oct, which writes the files of a 2-bit cache of latents"},
    {"kvpress kvtc", "use oscar-validate --methods kvtc_8x, which measures KVTC without a file"},
    {"optr",
     "use sglang-oct for rotations and key means, or oscar-validate --methods optr to measure "
     "OptR"},
    {"oscar_per_head_plain oscar_per_head_pbr oscar_per_head_br oscar_per_head_br_h128"
     " oscar_per_head_r_h oscar_per_head_h_pbr oscar_per_head_h_r_pbr oscar_per_head_h_pbr_r"
     " oscar_per_head_r_h_pbr oscar_shared_plain oscar_shared_pbr oscar_shared_br"
     " oscar_shared_br_h128 oscar_shared_r_h oscar_shared_h_pbr oscar_shared_h_r_pbr"
     " oscar_shared_h_pbr_r oscar_shared_r_h_pbr",
     "calibrate with --composition and compare with --other-artifact"},
    {"oscar_per_head_attention_output oscar_per_head_diagonal oscar_shared_attention_output"
     " oscar_shared_diagonal",
     "calibrate with --value-target and compare with --other-artifact"},
    {"oscar_k2v3 oscar_k2v4 oscar_k3v4 oscar_k4v3 oscar_shared_k2v3 oscar_shared_k2v4"
     " oscar_shared_k3v2 oscar_shared_k3v3 oscar_shared_k3v4 oscar_shared_k4v2"
     " oscar_shared_k4v3 oscar_shared_k4v4",
     "use oscar_k3v2, oscar_k3v3, oscar_k4v2 or oscar_k4v4"},
    {"oscar_shared_bisect oscar_shared_bf16_metadata", "use oscar_bisect or oscar_bf16_metadata"},
    {"oscar_shared_lloyd_max oscar_shared_lloyd_max_serving oscar_shared_lloyd_max_llamacpp"
     " hadamard_lloyd_max_serving hadamard_lloyd_max_llamacpp",
     "use oscar_lloyd_max, its _serving and _llamacpp forms, or hadamard_lloyd_max"},
    {"hadamard_fitted oscar_shared_fitted_feedback auto_feedback_kv",
     "use oscar_shared_fitted, oscar_shared_feedback_kv or auto_feedback"},
    {"turboquant_prod_1 turboquant_prod_2 turboquant_prod_3",
     "use turboquant_prod_4 or turboquant_mse_1 to turboquant_mse_4"},
    {"kvquant_int3 kvquant_int4 kvquant_nf2 kvquant_nf3 kvquant_nf4 kvquant_nuq3_dense"
     " kvquant_nuq4_dense",
     "use kvquant_nuq2 to kvquant_nuq4, kvquant_nuq2_dense or kvquant_int2"},
    {"kvarn_k4v4_g64 kvarn_k2v2_g64", "use kvarn_k4v2_g64, kvarn_k4v4 or kvarn_k2v2"},
    {"fp8_e5m2_calibrated fp8_k_nvfp4_v", "use fp8_e5m2_per_head or fp8_k_nvfp4_v_calibrated"},
    {"quarot_int4_per_token quarot_int2_symmetric quarot_int4_symmetric naive_int2_symmetric",
     "use quarot_int2, quarot_int4 or quarot_int2_per_token"},
    {"saw_int4_head_values saw_int4_values", "use saw_int4 or saw_int4_head"},
    {"pair_scaled_head_bits_25 pair_scaled_head_bits_30",
     "use oscar-calibrate --bits, which distributes bits among heads, and compare with "
     "--other-artifact"},
    {"rotatekv3_corrected octopus_3 block_gtq_k3v3 optr_per_head",
     "use rotatekv3, octopus_2, block_gtq_k3v2 or optr"},
    {"fish zsh", "use the bash completions (zsh reads them after bashcompinit)"},
};

}  // namespace

std::string RemovedHint(std::string_view name) {
  if (name.empty() || name.find(' ') != name.npos) return "";
  for (const RemovedNames& row : kRemoved) {
    for (size_t at = 0; at < row.names.size();) {
      const size_t end = std::min(row.names.find(' ', at), row.names.size());
      if (row.names.substr(at, end - at) == name)
        return fmt::format("was removed; {}", row.instead);
      at = end + 1;
    }
  }
  return "";
}

}  // namespace oscar
