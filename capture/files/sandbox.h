// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What a program that only looks at strangers' files gives up before it looks: the network, new and
// changed files, other programs (Linux seccomp; SECURITY.md). Trap: a kernel without such filters
// (some containers) grants nothing and refuses nothing; then the parsers stand alone.
#pragma once

#include <functional>
#include <string_view>

namespace oscar {

// For the rest of the process and its threads. False where the kernel has no filters.
bool EnterReadOnlySandbox();

// Calls `look` in a child process in that sandbox and waits for it. Throws what it throws, if that
// is an Error; InputError naming `what` where the child dies of a signal, as libraries do on files
// that were made for it, or takes more than a minute of processor time.
void LookInSandbox(const std::function<void()>& look, std::string_view what);

}  // namespace oscar
