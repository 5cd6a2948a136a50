// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The agreement between the CUDA kernels and their codec on a model: per head, and summed over all
// heads and layers.
#pragma once

#include "export/measures/read.h"

namespace oscar::measures {

struct CacheFormat {
  int64_t k_bits = 0, v_bits = 0, quant_group_size = 0, page_tokens = 0;
  std::string metadata;
  using T = CacheFormat;
  using Fields =
      Members<&T::k_bits, &T::v_bits, &T::quant_group_size, &T::page_tokens, &T::metadata>;
};

struct KernelHead {
  int64_t codes = 0, differing_codes = 0, differing_metadata = 0, differing_simulated = 0;
  NonNegative kernel_error, total_error;
  using T = KernelHead;
  using Fields = Members<&T::codes, &T::differing_codes, &T::differing_metadata,
                         &T::differing_simulated, &T::kernel_error, &T::total_error>;
};

struct KernelLayer {
  int64_t layer_id = 0;
  NonNegative write_us, decode_us;
  std::vector<KernelHead> heads;
  using T = KernelLayer;
  using Fields = Members<&T::layer_id, &T::write_us, &T::decode_us, &T::heads>;
};

struct Kernels : KernelHead {
  std::string gpu, rotations;
  CacheFormat format;
  int64_t sink_tokens = 0, recent_tokens = 0, tokens = 0, queries = 0;
  NonNegative kernel_error_limit;
  bool passed = false;
  std::vector<KernelLayer> layers;
  using T = Kernels;
  using Fields = Members<&T::gpu, &T::rotations, &T::format, &T::sink_tokens, &T::recent_tokens,
                         &T::tokens, &T::queries, &T::codes, &T::differing_codes,
                         &T::differing_metadata, &T::differing_simulated, &T::kernel_error,
                         &T::kernel_error_limit, &T::total_error, &T::passed, &T::layers>;
};
void Verify(const Spot& spot, const Kernels& kernels);

}  // namespace oscar::measures
