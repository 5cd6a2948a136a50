// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Gives up the permissions to use the network, to change or create files and to run programs,
// before a program inspects untrusted files (Linux seccomp; SECURITY.md). Trap: if the kernel has
// no such filters (some containers), this does nothing, and safety depends only on the parsers.
#pragma once

#include <functional>
#include <string_view>

namespace oscar {

// Applies to the rest of the process and its threads. Returns false if the kernel has no filters.
bool EnterReadOnlySandbox();

// Calls `look` in a sandboxed child process and waits for it. Rethrows its Error. Throws InputError
// naming `what` if a signal kills the child (malicious files can crash libraries) or if it takes
// more than a minute of processor time.
void LookInSandbox(const std::function<void()>& look, std::string_view what);

}  // namespace oscar
