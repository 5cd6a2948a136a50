// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/job/refit_layer.h"

#include <utility>

#include "calib/fit/fit.h"

namespace oscar {

LayerResult RefitLayer(LayerMoments moments, const FitOptions& fit, const ClipOptions& clip) {
  LayerFit sides = FitLayer(moments, fit);
  sides.k.clip_ratio = sides.k_shared.clip_ratio = clip.fixed_k;
  // A latent row is stored once, so it has one clip ratio, that of keys.
  sides.v.clip_ratio = sides.v_shared.clip_ratio = moments.latent ? clip.fixed_k : clip.fixed_v;
  return {std::move(moments),
          {},
          std::move(sides.k),
          std::move(sides.v),
          std::move(sides.k_shared),
          std::move(sides.v_shared),
          {},
          {}};
}

}  // namespace oscar
