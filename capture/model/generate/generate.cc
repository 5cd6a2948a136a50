// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/generate/generate.h"

#include <algorithm>

#include "linalg/base/check.h"

namespace oscar {

std::optional<std::vector<Continuation>> Generate(
    DecodeLoop& decoder, const std::vector<PromptToContinue>& prompts,
    const std::vector<int32_t>& stop_ids, const SamplingOptions& sampling,
    const std::function<bool(int64_t new_tokens)>& after_step) {
  std::vector<Continuation> continuations(prompts.size());
  std::vector<std::vector<int32_t>> sequences;
  std::vector<size_t> running;  // prompt index of each sequence in the decoder
  int64_t capacity = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    OSCAR_CHECK(!prompts[i].ids.empty() && prompts[i].longest > 0);
    sequences.push_back(prompts[i].ids);
    running.push_back(i);
    capacity = std::max<int64_t>(capacity, std::ssize(prompts[i].ids) + prompts[i].longest);
  }
  at::Tensor logits = decoder.Begin(std::move(sequences), capacity);
  while (true) {
    std::vector<DrawKey> keys;
    for (const size_t i : running)
      keys.push_back({prompts[i].number, static_cast<uint64_t>(continuations[i].ids.size())});
    const std::vector<int32_t> chosen = ChooseTokens(logits, sampling, keys);
    std::vector<size_t> kept, still;
    std::vector<int32_t> next;
    int64_t new_tokens = 0;
    for (size_t row = 0; row < running.size(); ++row) {
      Continuation& own = continuations[running[row]];
      own.ended = std::ranges::find(stop_ids, chosen[row]) != stop_ids.end();
      if (own.ended) continue;
      own.ids.push_back(chosen[row]);
      ++new_tokens;
      if (std::ssize(own.ids) >= prompts[running[row]].longest) continue;
      kept.push_back(row);
      still.push_back(running[row]);
      next.push_back(chosen[row]);
    }
    if (!after_step(new_tokens)) return std::nullopt;
    if (still.empty()) return continuations;
    if (still.size() < running.size()) decoder.Keep(kept);
    running = std::move(still);
    logits = decoder.Append(next);
  }
}

}  // namespace oscar
