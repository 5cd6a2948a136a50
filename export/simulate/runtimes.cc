// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of serving runtimes: how each stores rows with the rotations that oscar-export writes
// for it. Reports store the method names, so these must not change. A new runtime needs a row here;
// new behaviour needs a member of RuntimeSpec.
#include <vector>

#include "export/simulate/runtime_cache.h"

namespace oscar {
namespace {

using WindowRows = RuntimeSpec::WindowRows;

constexpr RowWriter kSortedAffine = {RowCodec::kAffine, ClipVariant::kSort};
constexpr RowWriter kBisectedAffine = {RowCodec::kAffine, ClipVariant::kBisect};
constexpr RowWriter kLloydMax = {RowCodec::kLloydMax, ClipVariant::kSort};
constexpr RowWriter kHalfOffset = {RowCodec::kHalfOffset, ClipVariant::kInterpolate};
constexpr RowWriter kLlamaQ2 = {RowCodec::kLlamaQ2, ClipVariant::kSort};

// FutureMLS-Lab/OSCAR, main and October trees. Rotations are bf16 GEMMs. The kernel that writes the
// prompt clips by sorting. The kernel that quantizes 8 decoded tokens at once clips by bisection.
// Only the prompt's kernel has Lloyd-Max levels.
constexpr RuntimeSpec Sglang(std::string_view runtime, std::string_view method,
                             std::string_view description, std::string_view ideal, bool per_head,
                             RowWriter prefill, bool chosen = false) {
  return {.runtime = runtime,
          .method = method,
          .description = description,
          .ideal = ideal,
          .chosen = chosen,
          .per_head = per_head,
          .bf16_rotation = true,
          .window_rows = WindowRows::kRotatedBf16,
          .prefill = prefill,
          .flush = kBisectedAffine,
          .flush_tokens = 8};
}

constexpr std::string_view kSharedArm = "oscar_shared+clip+windows",
                           kPerHead = "oscar_per_head+clip+windows", kChosen = "auto+windows";

// vLLM's pull request 46774. Rotations are float32. Rows in windows are not rotated, and they also
// have a quantized copy. The sink consists of whole pages of 16 tokens. The first and the last two
// layers are not quantized.
constexpr RuntimeSpec Vllm(std::string_view method, std::string_view description,
                           std::string_view ideal, bool chosen = false) {
  return {.runtime = "vllm",
          .method = method,
          .description = description,
          .ideal = ideal,
          .chosen = chosen,
          .window_rows = WindowRows::kAsTheyCame,
          .prefill = kHalfOffset,
          .flush = kHalfOffset,
          .sink_page = 16,
          .native_layers = 2,
          .metadata_bits = 32,
          .windows_held_twice = true};
}

// llama.cpp's branch zhongzhu/llamacpp, type q2_0. Rotations are float32, windows are f16, and
// blocks have 32 values.
constexpr RuntimeSpec Llamacpp(std::string_view method, std::string_view description,
                               std::string_view ideal, bool chosen = false) {
  return {.runtime = "llamacpp",
          .method = method,
          .description = description,
          .ideal = ideal,
          .chosen = chosen,
          .window_rows = WindowRows::kRotatedHalf,
          .one_clip_ratio = true,
          .prefill = kLlamaQ2,
          .flush = kLlamaQ2,
          .metadata_bits = 32,
          .metadata_group = 32,
          .windows_held_twice = true};
}

constexpr RuntimeSpec kRuntimes[] = {
    Sglang("sglang", "runtime_sglang", "OSCAR's SGLang: shared rotations, bf16 arithmetic",
           kSharedArm, false, kSortedAffine),
    Sglang("sglang", "runtime_sglang_lm", "OSCAR's SGLang with SGLANG_LLOYD_MAX=1", kSharedArm,
           false, kLloydMax),
    Sglang("sglang-oct", "runtime_sglang_oct",
           "OSCAR's SGLang of October: per-head rotations, bf16 arithmetic", kPerHead, true,
           kSortedAffine),
    Sglang("sglang-oct", "runtime_sglang_oct_lm",
           "OSCAR's SGLang of October with SGLANG_LLOYD_MAX=1", kPerHead, true, kLloydMax),
    Vllm("runtime_vllm",
         "vLLM's pull request: scales and minima in fp16, first and last 2 layers not quantized",
         kSharedArm),
    Llamacpp("runtime_llamacpp",
             "OSCAR's llama.cpp branch: q2_0 blocks of 32 and its own table of levels", kSharedArm),
    // The automatic choice in each runtime's file format: v1 (SGLang), v3 with key means and query
    // matrices (SGLang of October), v1 (vLLM), and GGUF (llama.cpp).
    Sglang("sglang", "runtime_sglang_auto",
           "OSCAR's SGLang with the automatic choice, as a v1 file", kChosen, false, kSortedAffine,
           true),
    Sglang("sglang-oct", "runtime_sglang_oct_auto",
           "OSCAR's SGLang of October with the automatic choice, as a v3 file", kChosen, true,
           kSortedAffine, true),
    Vllm("runtime_vllm_auto", "vLLM's pull request with the automatic choice", kChosen, true),
    Llamacpp("runtime_llamacpp_auto", "OSCAR's llama.cpp branch with the automatic choice", kChosen,
             true),
    {.runtime = "oscar-torch",
     .method = "runtime_oscar_torch_auto",
     .description = "liboscar_torch.so with the choice for `any`, 8 tokens at a time",
     .ideal = kChosen,
     .chosen = true,
     .choice = "any",
     .as_chosen = true,
     .flush_tokens = 8},
};

}  // namespace

std::span<const RuntimeSpec> Runtimes() { return kRuntimes; }

}  // namespace oscar
