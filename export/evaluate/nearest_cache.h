// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the simulated cache that a server behaves like, by the log probabilities of tokens that it
// generated. Distances are means of |server - arm|. Trap: the nearest arm need not explain the
// server. Errors of a rotation that no arm simulates are nearest to the exact cache, because two
// rotations' errors differ by more than either has. So the nearest arm must also be near, compared
// with the change that quantization makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "export/evaluate/bootstrap.h"

namespace oscar {

// Log probabilities (nats) of the same tokens. arms[0] is the exact cache; arms 1 .. num_own are
// the caches that the artifact allows a server to use.
struct ServedTokens {
  std::vector<double> server;             // [tokens]
  std::vector<std::vector<double>> arms;  // [arms][tokens]
  std::vector<int64_t> prompts;           // [tokens] prompt of each, ascending; resampled first
  size_t num_own = 1;
};

struct NearestCache {
  struct Arm {
    double distance = 0;  // mean |server - arm|, nats
    double effect = 0;    // mean |exact - arm|
    double nearest = 0;   // share of resamples in which the arm is the nearest
  };
  std::vector<Arm> arms;
  size_t nearest = 0;      // index of the nearest arm
  bool explained = false;  // whether the nearest arm is near enough to be the server's cache
  double own_confidence =
      0;                    // share of the resamples in which the server behaves like the artifact
  int64_t more_tokens = 0;  // needed for an answer that is 95 % sure, by the spread of resamples
};

// Resamples in two paired stages: prompts, then the tokens of each. Equal input gives equal results
// on every machine. Needs at least one token, and an arm that is neither the exact cache nor one of
// the artifact's.
NearestCache FindNearestCache(const ServedTokens& tokens, const BootstrapOptions& options = {});

}  // namespace oscar
