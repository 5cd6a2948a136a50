// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists the caches that a server may have, and measures generated tokens under each of them. As in
// a server's prefill, queries of the prompt read exact keys and values; queries of generated tokens
// read the cache. Trap: a server that prefills in chunks reads earlier chunks from its cache. So a
// prompt must not be longer than the first chunk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capture/model/run/layer_loop.h"
#include "export/validate/arm.h"
#include "export/validate/token_errors.h"

namespace oscar {

// Arms in the order that FindNearestCache needs: the exact model, the artifact's arms, then other
// caches that the server may have by mistake.
struct ServedArms {
  std::vector<Arm> arms;
  size_t num_own = 0;  // arms that serve the artifact correctly: arms[1], arms[2], ...
};

// Returns the names of arms with which a server may serve an artifact. The arms of the headline
// choice come first. Then comes one runtime for each different cache, then "auto" and OSCAR's own
// rotations. The artifact may lack what some of them need, and names may repeat.
std::vector<std::string> ArmsOfArtifact(const Artifact& artifact);

// Makes the arms named in `own` and `others`, except those that the artifact or this program does
// not support. Adds caches that a misconfigured server may have: faulty variants of the first own
// arm, and Hadamard. Throws UsageError for latent attention, InputError if no own arm is left.
ServedArms MakeServedArms(const std::vector<std::string>& own,
                          const std::vector<std::string>& others, const MethodContext& context);

struct ServedText {
  std::vector<std::vector<int32_t>> sequences;  // a prompt and at least one generated token
  int64_t prompt_tokens = 0;                    // in each sequence
};

// Returns the errors of generated tokens for each arm, sequence by sequence. A sequence's first
// generated token is predicted by the prompt, so it has the same errors under every arm. `on_layer`
// is called after each layer; if it returns false, this throws Interrupted.
std::vector<TokenErrors> ScoreServed(const LayerLoop& loop, const ServedText& text,
                                     const MethodContext& context, const std::vector<Arm>& arms,
                                     const std::function<bool(size_t layer_index)>& on_layer);

}  // namespace oscar
