// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/codecs/nsn_tensor.h"

#include <ATen/ATen.h>

#include <cmath>

#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/codecs/vector_codebook.h"
#include "export/simulate/random_rotation.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr AffineRule kFourBits = {.family = AffineFamily::kMinOffset,
                                  .bits = 4,
                                  .min_scale = 1e-5F,
                                  .metadata = StoredFloat::kFloat16};

at::Tensor RootMeanSquare(const at::Tensor& x) {  // [..., dim] -> [..., 1]
  return RoundedSqrt(TreeSum(x.square(), -1).div(static_cast<double>(x.size(-1))));
}

// Avoids division by zero for tokens of zeros.
at::Tensor OrOne(const at::Tensor& x) { return x.masked_fill(x.le(0), 1); }

at::Tensor FittedCodebook(int bits) {
  constexpr int64_t kSide = 512;  // 512^2 draws: 128 points for each entry
  const Matrix draws = RandomGaussian(kSide, /*seed=*/0, /*stream=*/static_cast<uint64_t>(bits));
  at::Tensor points = at::from_blob(const_cast<double*>(draws.data()),
                                    {kSide * kSide / kNsnWidth, kNsnWidth}, at::kDouble)
                          .clone();
  if (bits == 2) points = points.abs();
  return AffineFamilyRoundTrip(VectorCodebook(points, {.entries = 256}), kFourBits, kNsnWidth);
}

}  // namespace

NsnBlocks NormalizeShiftNormalize(const at::Tensor& blocks) {
  const int64_t tokens = blocks.size(1), dim = blocks.size(3);
  NsnBlocks result;
  const at::Tensor norms = RootMeanSquare(blocks).permute({0, 2, 3, 1}).contiguous();
  result.norms = AffineFamilyRoundTrip(norms, kFourBits, tokens).permute({0, 3, 1, 2});
  const at::Tensor normalized = blocks.div(OrOne(result.norms));
  const int64_t group = dim % kNsnMeanGroup == 0 ? kNsnMeanGroup : dim;
  result.means =
      AffineFamilyRoundTrip(normalized.mean(1, /*keepdim=*/true).contiguous(), kFourBits, group);
  const at::Tensor centred = normalized.sub(result.means);
  result.scales = RootMeanSquare(centred);
  result.rows = centred.div(OrOne(result.scales));
  return result;
}

const at::Tensor& NsnCodebook(int bits) {
  OSCAR_CHECK(bits == 1 || bits == 2);
  static const at::Tensor one = FittedCodebook(1), two = FittedCodebook(2);
  return bits == 1 ? one : two;
}

at::Tensor NsnRead(const at::Tensor& rows, int bits) {
  const at::Tensor points = rows.unflatten(-1, {-1, kNsnWidth});
  const at::Tensor& codebook = NsnCodebook(bits);
  if (bits == 1) return NearestEntries(points, codebook).flatten(-2);
  const at::Tensor magnitudes = NearestEntries(points.abs(), codebook);
  return at::where(points.lt(0), magnitudes.neg(), magnitudes).flatten(-2);
}

at::Tensor NsnScales(const at::Tensor& scales, const at::Tensor& rows, const at::Tensor& read) {
  const at::Tensor own = TreeSum(rows.square(), -1), common = TreeSum(rows.mul(read), -1);
  return RoundTo(scales.mul(own).div(common.clamp_min(1e-12)), StoredFloat::kFloat16);
}

}  // namespace oscar
