// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotated rows with the Lloyd-Max codecs of linalg/lloyd_max_codec.h: exact levels for the whole
// head, the equidistant levels of OSCAR's serving code, and llama.cpp's blocks of 32 values with
// its own table. Here all rows have these codes. SGLang writes them only for prompts and affine
// codes for other tokens; runtime_sglang_lm simulates that. llama.cpp's own Hadamard transform is
// off, as in OSCAR's branch of llama.cpp.
#include "export/simulate/affine_cost.h"
#include "export/simulate/codecs/lloyd_max_tensor.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/stored_rotations.h"

namespace oscar {
namespace {

struct LloydMaxRow {
  std::string_view name, description;
  LloydMaxForm form;
  bool hadamard = false;  // otherwise the artifact's rotation of each KV head
};

constexpr LloydMaxForm kExact = LloydMaxForm::kExact, kServing = LloydMaxForm::kServing,
                       kLlamaCpp = LloydMaxForm::kLlamaCpp;

constexpr LloydMaxRow kLloydMaxTable[] = {
    {"oscar_lloyd_max", "OSCAR with Lloyd-Max levels, 2 bits", kExact},
    {"oscar_lloyd_max_serving", "OSCAR with the equidistant levels of SGLANG_LLOYD_MAX, 2 bits",
     kServing},
    {"oscar_lloyd_max_llamacpp", "OSCAR with llama.cpp's q2_0 levels, 2 bits", kLlamaCpp},
    {"hadamard_lloyd_max", "Hadamard rotation with Lloyd-Max levels, 2 bits", kExact, true},
};

LayerCache Make(const LloydMaxRow& row, const MethodContext& context, size_t layer_index,
                const ArmOptions& options) {
  RotatedSides sides;
  if (row.hadamard) {
    const AttentionSpec& spec = context.layers()[layer_index].attention;
    const ClipPair clip = GivenClip(context, options);
    sides.k = {.rotation = HadamardTensor(spec.head_dim), .codes = {.clip = {clip.k}}};
    sides.v = {.rotation = HadamardTensor(spec.v_head_dim), .codes = {.clip = {clip.v}}};
  } else {
    sides = StoredRotations(context, layer_index, RotationGrouping::kOwn, options);
  }
  sides.k.codec = sides.v.codec = [form = row.form](const at::Tensor& rows) {
    return LloydMaxRoundTrip(rows, form);
  };
  return RotatedCache(context, options, std::move(sides));
}

// Groups store a standard deviation and a mean instead of a scale and a zero: float32 in SGLang's
// buffers, float16 for every 32 values in llama.cpp's blocks.
AffineSide CostOf(LloydMaxForm form) {
  if (form == kLlamaCpp) return {.actual_metadata_bits = 32, .quant_group_size = kLlamaScaleValues};
  return {.quant_group_size = kWholeHead};
}

}  // namespace

std::vector<CacheMethod> LloydMaxMethods() {
  std::vector<CacheMethod> methods;
  for (const LloydMaxRow& row : kLloydMaxTable) {
    const bool oscar = !row.hadamard;
    methods.push_back(
        {.name = row.name,
         .description = row.description,
         .takes_bf16 = true,
         .as_published = {.clip = row.form == kServing, .windows = oscar},
         .clip_ratios = oscar ? kArtifactClipRatios : "",
         .make =
             [&row](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
               return Make(row, context, layer_index, options);
             },
         .cost = AffineCost(CostOf(row.form)),
         .available = oscar ? HasStoredRotations(RotationGrouping::kOwn) : nullptr});
  }
  return methods;
}

}  // namespace oscar
