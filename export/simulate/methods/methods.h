// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Single methods of the table, and what several methods share. Functions that make whole families
// of methods are declared in methods.cc, next to the table.
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

// Returns OSCAR's per-head rotations with the artifact's clip ratios, scales that are fitted to the
// codes, and error feedback for keys. Throws InputError if the artifact has no moments.
RotatedSides FedPerHeadSides(const MethodContext& context, size_t layer_index);

// Null controls.
CacheMethod IdentityControl();
CacheMethod RandomRotationControl();
CacheMethod WrongLayerControl();
CacheMethod ShuffledTokensControl();
CacheMethod QuantizerOffControl();

}  // namespace oscar
