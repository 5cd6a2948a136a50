// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of methods, in the order in which arms are listed. Each paper has a file in this
// folder; its function is declared and listed here.
#include "export/simulate/methods/methods.h"

#include <span>
#include <utility>
#include <vector>

#include "export/simulate/runtime_cache.h"

namespace oscar {

using Rows = std::vector<CacheMethod>();
Rows KiviMethods, KittyMethods, KvarnMethods, OscarKvMethods, PairScaledMethods, BalancedMethods,
    Float8Methods, QuarotMethods, SawMethods, OscarVariants, LloydMaxMethods, WriterMethods,
    TurboQuantMethods, KvQuantMethods, RotateKvMethods, OptrMethods, Nvfp4Methods, SquatMethods,
    TrellisMethods, BlockGtqMethods, OctopusMethods, VecInferMethods, NsnQuantMethods, KvtcMethods,
    KvLincMethods, AquaKvMethods, HeadQMethods, CacheTypeMethods, ReleasedTypeMethods;

namespace {

constexpr Rows* kFamilies[] = {
    KiviMethods,     KittyMethods,    KvarnMethods,      OscarKvMethods,      PairScaledMethods,
    BalancedMethods, Float8Methods,   QuarotMethods,     SawMethods,          OscarVariants,
    LloydMaxMethods, WriterMethods,   TurboQuantMethods, KvQuantMethods,      RotateKvMethods,
    OptrMethods,     Nvfp4Methods,    SquatMethods,      TrellisMethods,      BlockGtqMethods,
    OctopusMethods,  VecInferMethods, NsnQuantMethods,   KvtcMethods,         KvLincMethods,
    AquaKvMethods,   HeadQMethods,    CacheTypeMethods,  ReleasedTypeMethods,
};

std::vector<CacheMethod> AllMethods() {
  std::vector<CacheMethod> methods = {
      Bf16Method(),         NaiveInt2Method(),       NaiveInt4Method(),   HadamardInt2Method(),
      OscarSharedMethod(),  OscarPerHeadMethod(),    AutoChoiceMethod(),  HadamardInt4Method(),
      IdentityControl(),    RandomRotationControl(), WrongLayerControl(), ShuffledTokensControl(),
      QuantizerOffControl()};
  for (Rows* family : kFamilies) {
    for (CacheMethod& method : family()) methods.push_back(std::move(method));
  }
  for (const RuntimeSpec& runtime : Runtimes()) methods.push_back(RuntimeMethod(runtime));
  return methods;
}

}  // namespace

std::span<const CacheMethod> CacheMethods() {
  static const std::vector<CacheMethod> methods = AllMethods();
  return methods;
}

}  // namespace oscar
