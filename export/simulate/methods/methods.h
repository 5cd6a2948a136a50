// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions that make the rows of the table in methods.cc. Tests call them for one family.
#pragma once

#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"

namespace oscar {

CacheMethod Bf16Method();
CacheMethod NaiveInt2Method();
CacheMethod NaiveInt4Method();
CacheMethod HadamardInt2Method();
CacheMethod HadamardInt4Method();
CacheMethod OscarSharedMethod();
CacheMethod OscarPerHeadMethod();
CacheMethod AutoChoiceMethod();  // the headline choice

std::vector<CacheMethod> WriterMethods();
// Returns OSCAR's per-head rotations with the artifact's clip ratios, fitted scales and error
// feedback for keys. Throws InputError if the artifact has no moments.
RotatedSides FedPerHeadSides(const MethodContext& context, size_t layer_index);
std::vector<CacheMethod> PairScaledMethods();
std::vector<CacheMethod> BalancedMethods();

std::vector<CacheMethod> KvQuantMethods();
std::vector<CacheMethod> RotateKvMethods();
std::vector<CacheMethod> OptrMethods();

std::vector<CacheMethod> KiviMethods();
std::vector<CacheMethod> KittyMethods();
std::vector<CacheMethod> KvarnMethods();
std::vector<CacheMethod> OscarKvMethods();

std::vector<CacheMethod> Float8Methods();
std::vector<CacheMethod> ReleasedTypeMethods();
std::vector<CacheMethod> QuarotMethods();
std::vector<CacheMethod> SawMethods();
std::vector<CacheMethod> OscarVariants();
std::vector<CacheMethod> LloydMaxMethods();
std::vector<CacheMethod> TurboQuantMethods();
std::vector<CacheMethod> Nvfp4Methods();
std::vector<CacheMethod> CacheTypeMethods();
std::vector<CacheMethod> SquatMethods();
std::vector<CacheMethod> TrellisMethods();
std::vector<CacheMethod> BlockGtqMethods();
std::vector<CacheMethod> OctopusMethods();
std::vector<CacheMethod> VecInferMethods();
std::vector<CacheMethod> NsnQuantMethods();
std::vector<CacheMethod> KvtcMethods();
std::vector<CacheMethod> KvLincMethods();
std::vector<CacheMethod> AquaKvMethods();
std::vector<CacheMethod> HeadQMethods();

// Null controls.
CacheMethod IdentityControl();
CacheMethod RandomRotationControl();
CacheMethod WrongLayerControl();
CacheMethod ShuffledTokensControl();
CacheMethod QuantizerOffControl();

}  // namespace oscar
