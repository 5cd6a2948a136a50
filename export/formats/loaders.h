// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The software that loads each format of oscar-export --to: its repository and branch, commit or
// pull request, its release and its hardware. Trap: most of it is not released. Facts that are not
// known are marked so; kLoadersAsOf is the date of the research.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace oscar {

struct Loader {
  std::string_view target;    // the name for --to
  std::string_view source;    // repository and branch, commit or pull request
  std::string_view released;  // the released version; kNotReleased if none is known
  std::string_view hardware;
};

inline constexpr std::string_view kNotReleased = "no released version is known";
inline constexpr std::string_view kLoadersAsOf = "November 2026";

// One line on the difference between --to sglang and --to sglang-oct.
inline constexpr std::string_view kSglangTrees =
    "sglang: OSCAR's repository before 3 October 2026, one rotation per layer; sglang-oct: its "
    "main "
    "branch since then, also per head, with key means and latents";

// Returns the loader for a value of --to. Copies of the checkpoint have none.
const Loader& LoaderOf(std::string_view target);

// Returns a loader's source, release and hardware, one sentence each, for launch files and lists.
std::array<std::string, 3> LoaderLines(const Loader& loader);

}  // namespace oscar
