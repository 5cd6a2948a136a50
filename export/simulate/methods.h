// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of the table in cache_method.cc, one function per file. Only that file includes this.
#pragma once

#include "export/simulate/cache_method.h"

namespace oscar {

CacheMethod Bf16Method();
CacheMethod NaiveInt2Method();
CacheMethod HadamardInt2Method();
CacheMethod HadamardInt4Method();
CacheMethod OscarSharedMethod();
CacheMethod OscarPerHeadMethod();

// Null controls.
CacheMethod IdentityControl();
CacheMethod RandomRotationControl();
CacheMethod WrongLayerControl();
CacheMethod ShuffledTokensControl();
CacheMethod QuantizerOffControl();

}  // namespace oscar
