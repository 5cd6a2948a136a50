// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists the caches that a server may have, and measures what generated tokens cost under each of
// them. The prompt is read as by a server's prefill: its queries attend to exact keys and values,
// those of generated tokens to the cache. Trap: a server that prefills in chunks reads earlier
// chunks from its cache, so a prompt must be no longer than the first chunk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capture/model/run/layer_loop.h"
#include "export/validate/arm.h"
#include "export/validate/token_errors.h"

namespace oscar {

// Arms in the order that FindNearestCache needs: exact, the artifact's, and other possible ones.
struct ServedArms {
  std::vector<Arm> arms;
  size_t num_own = 0;   // arms that serve the artifact correctly
  GuestMethods faults;  // methods of some of the arms
};

// Returns the names of arms that serve an artifact, the headline's first: one per runtime with a
// different cache, and OSCAR's. The artifact may lack what some of them need. Names may repeat.
std::vector<std::string> ArmsOfArtifact(const Artifact& artifact);

// Makes the arms of `own` and `others` (names), without those that the artifact or this program
// does not support. Faults are variants of the first of `own`. Throws UsageError for latent
// attention, InputError if no own arm is left.
ServedArms MakeServedArms(const std::vector<std::string>& own,
                          const std::vector<std::string>& others, const MethodContext& context);

struct ServedText {
  std::vector<std::vector<int32_t>> sequences;  // a prompt and at least one generated token
  int64_t prompt_tokens = 0;                    // in each sequence
};

// Returns errors of generated tokens by arm, sequence by sequence. The prompt predicts the first
// token of each, so its cost is the same under every arm. `on_layer` is called after each layer and
// returns whether to continue; if not, throws Interrupted.
std::vector<TokenErrors> ScoreServed(const LayerLoop& loop, const ServedText& text,
                                     const MethodContext& context, const std::vector<Arm>& arms,
                                     const std::function<bool(size_t layer_index)>& on_layer);

}  // namespace oscar
