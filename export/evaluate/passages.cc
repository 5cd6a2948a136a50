// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/passages.h"

#include <algorithm>
#include <set>
#include <utility>

#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

constexpr int64_t kHiddenTokens = 16, kGivenTokens = 12;  // the question gives 12 of 16
constexpr int64_t kTokensOfText = 128;                    // text tokens per passage
constexpr int64_t kFewest = 2, kMost = 8;                 // passages per text
constexpr double kHiddenWithin = 2.0 / 3;                 // passages lie in this share of the text

using Ids = std::vector<int32_t>;

// Returns the distinct tokens of all texts, except the first token of each text.
Ids Vocabulary(const std::vector<Ids>& texts) {
  std::set<int32_t> ids;
  for (const Ids& text : texts) ids.insert(text.begin(), text.end());
  for (const Ids& text : texts) ids.erase(text.front());
  return {ids.begin(), ids.end()};
}

// Returns the first `size` tokens of `text` with the passages inserted, in order and spread out.
// Appends the depths of the passages (percent) to `depths`.
Ids Hide(const Ids& text, int64_t size, const std::vector<Ids>& passages, SplitMix64& random,
         std::vector<double>& depths) {
  const double part =
      kHiddenWithin * static_cast<double>(size) / static_cast<double>(passages.size());
  Ids ids;
  int64_t done = 0;
  for (size_t i = 0; i < passages.size(); ++i) {
    const double share = static_cast<double>(random.Below(1000)) / 1000;
    // The first token of the text stays first.
    const int64_t place =
        std::max<int64_t>(1, static_cast<int64_t>(part * (static_cast<double>(i) + share)));
    ids.insert(ids.end(), text.begin() + done, text.begin() + place);
    depths.push_back(100 * static_cast<double>(place) / static_cast<double>(size));
    ids.insert(ids.end(), passages[i].begin(), passages[i].end());
    done = place;
  }
  ids.insert(ids.end(), text.begin() + done, text.begin() + size);
  return ids;
}

NeedleSample MakeSample(const Ids& text, int64_t count, const Ids& vocabulary, uint64_t seed) {
  SplitMix64 random(seed);
  Ids tokens = vocabulary;
  std::vector<Ids> passages;
  for (int64_t i = 0; i < count; ++i) {
    random.Shuffle(tokens);
    passages.emplace_back(tokens.begin(), tokens.begin() + kHiddenTokens);
  }
  const int64_t length = std::ssize(text);
  NeedleSample sample;
  sample.task = kPassagesTask;
  sample.length = length;
  std::vector<double> depths;
  sample.ids = Hide(text, length - count * kHiddenTokens * 2, passages, random, depths);
  std::vector<size_t> order;
  for (size_t i = 0; i < passages.size(); ++i) order.push_back(i);
  random.Shuffle(order);
  for (const size_t asked : order) {
    for (size_t at = kGivenTokens; at < kHiddenTokens; ++at) {
      const int64_t position = std::ssize(sample.ids) + static_cast<int64_t>(at);
      NeedleSample::Answer answer{
          .begin = position, .end = position + 1, .depth = depths[asked], .value = {}};
      for (const Ids& passage : passages)
        if (passage[at] != passages[asked][at]) answer.rivals.push_back(passage[at]);
      sample.answers.push_back(std::move(answer));
    }
    sample.ids.insert(sample.ids.end(), passages[asked].begin(), passages[asked].end());
  }
  sample.depth = sample.answers.front().depth;
  return sample;
}

}  // namespace

std::vector<NeedleSample> MakePassageSamples(const std::vector<Ids>& own_words, uint64_t seed) {
  std::vector<NeedleSample> samples;
  const Ids vocabulary = Vocabulary(own_words);
  if (std::ssize(vocabulary) < 2 * kHiddenTokens) return samples;
  SplitMix64 seeds(seed);
  for (const Ids& text : own_words) {
    const int64_t count = std::min(std::ssize(text) / kTokensOfText, kMost);
    const uint64_t own_seed = seeds.Next();
    if (count >= kFewest) samples.push_back(MakeSample(text, count, vocabulary, own_seed));
  }
  return samples;
}

}  // namespace oscar
