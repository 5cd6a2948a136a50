// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OptR (arXiv 2608.02691): INT2, keys centred by the artifact's key mean, and a rotation per KV
// head, refined by gradient descent on calibration rows (calib/search/rotation_refinement.h). The
// refinement uses the windows of the options even for an arm without windows, so that arms with and
// without windows read the same quantized rows.
#include <ATen/ATen.h>

#include <array>

#include "calib/search/rotation_refinement.h"
#include "export/simulate/affine_cost.h"
#include "export/simulate/fitted_moments.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"
#include "export/simulate/stored_rotations.h"

namespace oscar {
namespace {

struct OptrRow {
  std::string_view name, description;
  bool hadamard = false;  // the starting point; otherwise the artifact's shared rotation
};

constexpr std::array kOptrTable = {
    OptrRow{"optr", "OptR: OSCAR's rotation of a layer refined for each KV head, centred keys"},
    OptrRow{"optr_hadamard", "OptR from the Hadamard rotation (QuaRot), centred keys", true},
};

RotatedSides StartOf(bool hadamard, const MethodContext& context, size_t layer_index,
                     const ClipPair& clip) {
  if (hadamard) {
    const AttentionSpec& spec = context.layers()[layer_index].attention;
    return AffineSides(context, HadamardTensor(spec.head_dim), HadamardTensor(spec.v_head_dim),
                       clip);
  }
  RotatedSides sides = StoredRotations(context, layer_index, RotationGrouping::kShared, {});
  return AffineSides(context, sides.k.rotation, sides.v.rotation, clip);
}

at::Tensor KeyMeans(const MethodContext& context, size_t layer_index) {
  const LayerMoments moments = ArtifactMoments(context, layer_index);
  at::Tensor means = at::empty({moments.num_kv_heads, moments.head_dim}, at::kFloat);
  float* out = means.mutable_data_ptr<float>();
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    for (const double value : moments.KeyMean(head)) *out++ = static_cast<float>(value);
  }
  return means;
}

RefinementProblem Problem(const MethodContext& context, size_t layer_index) {
  RefinementProblem problem;
  problem.attention = context.layers()[layer_index].attention;
  std::vector<RefinementSequence> sequences;
  const CalibrationRows& rows = context.rows();
  for (size_t i = 0; i < rows.k.size(); ++i) sequences.push_back({rows.q[i], rows.k[i], rows.v[i]});
  problem.rows = SplitRows(std::move(sequences));
  problem.key_mean = KeyMeans(context, layer_index);
  if (context.options().output_projection)
    problem.output_projection = context.options().output_projection(layer_index);
  return problem;
}

LayerCache MakeCache(bool hadamard, const MethodContext& context, size_t layer_index,
                     const ArmOptions& options) {
  RotatedSides sides = StartOf(hadamard, context, layer_index, GivenClip(context, options));
  sides.k.codes.clip_groups = sides.v.codes.clip_groups = true;
  const RefinementOptions refinement{
      .windows = context.options().windows, .k = sides.k.codes, .v = sides.v.codes};
  const RefinementProblem problem = Problem(context, layer_index);
  const HeadTransforms k = RefineKeys(problem, {sides.k.rotation, {}}, refinement).transforms;
  sides.k.mean = problem.key_mean;
  sides.v.rotation =
      RefineValues(problem, {sides.v.rotation, {}}, k, refinement).transforms.transform;
  sides.k.rotation = k.transform;
  return RotatedCache(context, options, std::move(sides));
}

bool Available(bool hadamard, const MethodContext& context) {
  if (!HasFit(context)) return false;  // without moments there is no key mean
  return hadamard || HasStoredRotations(RotationGrouping::kShared)(context);
}

}  // namespace

std::vector<CacheMethod> OptrMethods() {
  std::vector<CacheMethod> methods;
  for (const OptrRow& variant : kOptrTable) {
    methods.push_back(
        {.name = variant.name,
         .description = variant.description,
         .takes_bf16 = true,
         .as_published = {.clip = true, .windows = true},
         .needs_rows = true,
         .why_no_latents = "it learns one matrix for keys and another for values",
         .make =
             [hadamard = variant.hadamard](const MethodContext& context, size_t layer_index,
                                           const ArmOptions& options) {
               return MakeCache(hadamard, context, layer_index, options);
             },
         .cost = AffineCost({}),
         .available = [hadamard = variant.hadamard](
                          const MethodContext& context) { return Available(hadamard, context); }});
  }
  return methods;
}

}  // namespace oscar
