// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds which of several simulated caches (arms) a server behaves like, from the log probabilities
// of tokens that it generated. The distance of an arm is the mean of |server - arm|.
//
// Trap: the nearest arm need not explain the server. If the server uses a rotation that no arm
// simulates, the exact cache is the nearest arm, because the errors of two rotations differ by more
// than either error. So the nearest arm must also be near, compared with the change that
// quantization makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "export/evaluate/bootstrap.h"

namespace oscar {

// Log probabilities (nats) of the same tokens from the server and from every arm. arms[0] is the
// exact cache. Arms 1 to num_own are the caches that the artifact allows a server to use.
struct ServedTokens {
  std::vector<double> server;             // [tokens]
  std::vector<std::vector<double>> arms;  // [arms][tokens]
  std::vector<int64_t> prompts;           // [tokens] the prompt of each token, ascending
  size_t num_own = 1;
};

struct NearestCache {
  struct Arm {
    double distance = 0;  // mean |server - arm|, nats
    double effect = 0;    // mean |exact - arm|
    double nearest = 0;   // share of resamples in which this arm is the nearest
  };
  std::vector<Arm> arms;
  size_t nearest = 0;      // index of the nearest arm
  bool explained = false;  // whether the nearest arm is near enough to be the server's cache
  double own_confidence =
      0;                    // share of the resamples in which the server behaves like the artifact
  int64_t more_tokens = 0;  // tokens still needed for 95 % certainty, judging by the resamples
};

// A resample draws prompts, and then tokens from each drawn prompt; all arms use the same tokens.
// Equal input gives equal results on every machine. There must be at least one token, and at least
// one arm that is neither the exact cache nor one of the artifact's.
NearestCache FindNearestCache(const ServedTokens& tokens, const BootstrapOptions& options = {});

}  // namespace oscar
