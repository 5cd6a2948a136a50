// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How long LibTorch's worker threads spin at the end of a piece of work before they sleep.
// libgomp's own default is a thousandth of a second: beside other processes, which have the core
// that another worker needs, a program then takes several times as long.
#pragma once

namespace oscar {

// A program that calls this has started with GOMP_SPINCOUNT in its environment, unless its user
// chose that or OMP_WAIT_POLICY. Trap: libgomp reads its environment when it is loaded, so the
// program starts itself anew before that.
void KeepWaitsShort();

}  // namespace oscar
