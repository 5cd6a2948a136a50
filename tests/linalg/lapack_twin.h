// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace oscar {

int TwinCalls();         // how often a LAPACK name of the twin was called
void TwinCallsItself();  // calls dgemm_ as the twin's own code would: through the loader

}  // namespace oscar
