// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/lloyd_max_codec.h"

#include "linalg/base/check.h"

namespace oscar {

const LloydMaxTable& LloydMaxTableOf(LloydMaxForm form) {
  static constexpr double kStep = kServingScale / 2;  // levels (q - 1.5) scale
  static constexpr LloydMaxTable kExact = {
      {-0.9816, 0, 0.9816}, false, {-1.510, -0.4528, 0.4528, 1.510}};
  static constexpr LloydMaxTable kServing = {
      {-kServingThreshold, 0, kServingThreshold}, true, {-3 * kStep, -kStep, kStep, 3 * kStep}};
  static constexpr LloydMaxTable kLlamaCpp = {
      {-0.6745, 0, 0.6745}, false, {-0.9816, -0.4528, 0.4528, 0.9816}};
  switch (form) {
    case LloydMaxForm::kExact:
      return kExact;
    case LloydMaxForm::kServing:
      return kServing;
    case LloydMaxForm::kLlamaCpp:
      return kLlamaCpp;
  }
  OSCAR_CHECK(!"a LloydMaxForm without a table");
  return kExact;
}

LloydMaxGroups LloydMaxGroupsOf(LloydMaxForm form, int64_t dim) {
  if (form != LloydMaxForm::kLlamaCpp) return {dim, dim};
  return {dim % kLlamaMeanValues == 0 ? kLlamaMeanValues : dim,
          dim % kLlamaScaleValues == 0 ? kLlamaScaleValues : dim};
}

}  // namespace oscar
