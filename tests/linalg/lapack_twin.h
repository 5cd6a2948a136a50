// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace oscar {

int TwinCalls();         // number of calls to the twin's LAPACK functions
void TwinCallsItself();  // calls dgemm_ through the loader, as the twin's own code would

}  // namespace oscar
