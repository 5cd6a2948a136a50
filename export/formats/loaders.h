// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Names who can load what oscar-export --to writes: which repository, at which branch, commit or
// pull request, whether a released version can, and on what hardware. Trap: most of it is no
// release; what was not found out is said as such, and kLoadersAsOf says when it was looked up.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace oscar {

struct Loader {
  std::string_view target;    // as --to says it
  std::string_view source;    // repository and branch, commit or pull request
  std::string_view released;  // which released version; kNotReleased where none is known
  std::string_view hardware;
};

inline constexpr std::string_view kNotReleased = "no released version known";
inline constexpr std::string_view kLoadersAsOf = "November 2026";

// What tells --to sglang and --to sglang-oct apart, in one line.
inline constexpr std::string_view kSglangTrees =
    "sglang: OSCAR's repository before 3 October 2026, one rotation per layer; sglang-oct: its "
    "main "
    "branch since then, also per head, with key means and latents";

// Of a name that --to takes, except copies of the checkpoint.
const Loader& LoaderOf(std::string_view target);

// The same as the three sentences that launch files and lists have: where, released, hardware.
std::array<std::string, 3> LoaderLines(const Loader& loader);

}  // namespace oscar
