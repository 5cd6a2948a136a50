// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which caches a server may have, and what generated tokens cost under each of them when the prompt
// was read as a server's prefill reads it: the prompt's queries attend to exact keys and values,
// those of generated tokens to the cache. Trap: a server that prefills in chunks reads earlier
// chunks from its cache, so a prompt must be no longer than the first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capture/model/run/layer_loop.h"
#include "export/validate/arm.h"
#include "export/validate/token_errors.h"

namespace oscar {

// In the order that FindNearestCache wants: exact, the artifact's, and what else it may be.
struct ServedArms {
  std::vector<Arm> arms;
  size_t num_own = 0;   // arms that serve the artifact rightly
  GuestMethods faults;  // methods of some of the arms
};

// Names of the arms that serve what an artifact holds, the headline's first: what each runtime
// gets, where its cache is another, and OSCAR's. Some need more than it has; names may repeat.
std::vector<std::string> ArmsOfArtifact(const Artifact& artifact);

// `own` and `others`: names; leaves out what the artifact or this program has not. Faults are those
// of the first of `own`. Throws UsageError for latent attention, InputError where no own arm is
// left.
ServedArms MakeServedArms(const std::vector<std::string>& own,
                          const std::vector<std::string>& others, const MethodContext& context);

struct ServedText {
  std::vector<std::vector<int32_t>> sequences;  // a prompt and what was generated, at least a token
  int64_t prompt_tokens = 0;                    // of each sequence
};

// Errors of generated tokens by arm, sequence by sequence. The first token of each is predicted by
// the prompt, so it costs the same under every arm. `on_layer` says after each layer whether to go
// on; Interrupted if not.
std::vector<TokenErrors> ScoreServed(const LayerLoop& loop, const ServedText& text,
                                     const MethodContext& context, const std::vector<Arm>& arms,
                                     const std::function<bool(size_t layer_index)>& on_layer);

}  // namespace oscar
