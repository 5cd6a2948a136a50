// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Limits how long LibTorch's worker threads spin after their work before they sleep. libgomp's
// default is a millisecond. If other processes need the core of a waiting worker, a program then
// takes several times as long.
#pragma once

namespace oscar {

// Makes the program run with GOMP_SPINCOUNT in its environment, unless the user set that or
// OMP_WAIT_POLICY. Trap: libgomp reads its environment when it is loaded, so the program restarts
// itself before that.
void KeepWaitsShort();

}  // namespace oscar
