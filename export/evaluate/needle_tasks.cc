// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/needle_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "capture/files/replace_all.h"
#include "export/evaluate/needle_words.h"

namespace oscar {
namespace {

using enum HaystackKind;
using enum NeedleText;

constexpr auto kTasks = std::to_array<NeedleTask>({
    // Columns: name, haystack, key, value, keys, values, queries, chains, hops.
    {"single_1", kNoise, kWords, kNumbers, 1, 1, 1, 0, 0},
    {"single_2", kProse, kWords, kNumbers, 1, 1, 1, 0, 0},
    {"single_3", kProse, kWords, kUuids, 1, 1, 1, 0, 0},
    {"multikey_1", kProse, kWords, kNumbers, 4, 1, 1, 0, 0},
    {"multikey_2", kNeedles, kWords, kNumbers, 1, 1, 1, 0, 0},
    {"multikey_3", kNeedles, kUuids, kUuids, 1, 1, 1, 0, 0},
    {"multivalue", kProse, kWords, kNumbers, 1, 4, 1, 0, 0},
    {"multiquery", kProse, kWords, kNumbers, 4, 1, 4, 0, 0},
    // RULER uses one chain, so an answer that names every variable is right. Two chains require a
    // search.
    {"variable_tracking", kNoise, kWords, kNumbers, 0, 0, 1, 1, 4},
    {"variable_tracking_2", kNoise, kWords, kNumbers, 0, 0, 1, 2, 4},
});

// Templates of RULER, scripts/data/synthetic/constants.py. {type} and {query} are filled in.
constexpr std::string_view kBefore =
    "Some special magic {type} are hidden within the following text. Make sure to memorize it. I "
    "will quiz you about the {type} afterwards.\n";
constexpr std::string_view kAfter =
    "\nWhat are all the special magic {type} for {query} mentioned in the provided text? The "
    "special magic {type} for {query} mentioned in the provided text are";
// RULER's template of variable tracking without its worked example. {query} and {count} are filled
// in.
constexpr std::string_view kTrackBefore =
    "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n";
constexpr std::string_view kTrackAfter =
    "\nQuestion: Find all variables that are assigned the value {query} in the text above. Answer: "
    "According to the chain(s) of variable assignment in the text above, {count} variables are "
    "assigned the value {query}, they are:";

// Changes a template to the singular, as RULER does for one query with one value. The order of the
// replacements matters.
std::string Singular(std::string text) {
  for (const auto& [from, to] : {std::pair("Some", "A"), std::pair("are all", "is"),
                                 std::pair("are", "is"), std::pair("answers", "answer")}) {
    text = ReplaceAll(std::move(text), from, to);
  }
  return text;
}

std::string MakeWordPair(const std::vector<std::string>& words, SplitMix64& random) {
  if (words.empty()) {
    const std::string_view adjective = random.Pick(NeedleAdjectives());
    return fmt::format("{}-{}", adjective, random.Pick(NeedleNouns()));
  }
  const size_t first = random.Below(words.size());
  const size_t step = 1 + random.Below(words.size() - 1);
  return fmt::format("{}-{}", words[first], words[(first + step) % words.size()]);
}

// Makes a UUID of RFC 9562, version 4.
std::string MakeUuid(SplitMix64& random) {
  uint64_t high = random.Next();
  uint64_t low = random.Next();
  high = (high & ~uint64_t{0xF000}) | 0x4000;
  low = (low & ~(uint64_t{3} << 62)) | uint64_t{2} << 62;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xFFFF,
                     high & 0xFFFF, low >> 48, low & 0xFFFFFFFFFFFFU);
}

std::string MakeText(NeedleText kind, const std::vector<std::string>& words, SplitMix64& random) {
  switch (kind) {
    case kWords:
      return MakeWordPair(words, random);
    case kNumbers:
      return std::to_string(random.Between(1000000, 9999999));
    case kUuids:
      return MakeUuid(random);
  }
  return {};
}

// Calls `make` until there are `count` different texts.
template <class Make>
std::vector<std::string> MakeDistinct(size_t count, Make make) {
  std::vector<std::string> texts;
  while (texts.size() < count) {
    std::string text = make();
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  }
  return texts;
}

std::string_view TypeName(NeedleText value) { return value == kUuids ? "uuids" : "numbers"; }

std::string NeedleSentence(NeedleText kind, std::string_view key, std::string_view value) {
  return fmt::format("One of the special magic {} for {} is: {}.", TypeName(kind), key, value);
}

// Joins a list of queries as RULER does: "a", "a, and b", "a, b, and c".
std::string Enumerate(const std::vector<std::string>& items) {
  std::string text = items.front();
  for (size_t i = 1; i < items.size(); ++i) {
    text += (i + 1 == items.size() ? ", and " : ", ") + items[i];
  }
  return text;
}

void SetAnswer(NeedleQuestion& question) {
  question.answer = " " + Enumerate(question.values) + ".";
  size_t from = 0;
  for (const std::string& value : question.values) {
    question.value_offsets.push_back(question.answer.find(value, from));
    from = question.value_offsets.back() + value.size();
  }
}

NeedleQuestion MakeNeedles(const NeedleTask& task, const std::vector<std::string>& words,
                           SplitMix64& random) {
  const auto num_keys = static_cast<size_t>(task.num_keys);
  const auto num_values = static_cast<size_t>(task.num_values);
  std::vector<std::string> keys =
      MakeDistinct(num_keys, [&] { return MakeText(task.key, words, random); });
  const std::vector<std::string> values =
      MakeDistinct(num_keys * num_values, [&] { return MakeText(task.value, words, random); });
  NeedleQuestion question;
  question.key = task.key;
  question.value = task.value;
  // The questions are about the first keys; all needles are shuffled below. The expected order of
  // answers is that of the text for several values of one key, and that of the query for several
  // keys.
  for (size_t i = 0; i < values.size(); ++i) {
    const bool asked = i / num_values < static_cast<size_t>(task.num_queries);
    question.hidden.push_back({NeedleSentence(task.value, keys[i / num_values], values[i]),
                               asked ? static_cast<int>(i) : -1});
    if (asked) question.values.push_back(values[i]);
  }
  random.Shuffle(question.hidden);
  if (num_values > 1) {
    std::vector<std::string> in_text;
    for (HiddenSentence& sentence : question.hidden) {
      in_text.push_back(question.values[static_cast<size_t>(sentence.answer)]);
      sentence.answer = static_cast<int>(in_text.size() - 1);
    }
    question.values = std::move(in_text);
  }
  keys.resize(static_cast<size_t>(task.num_queries));
  const bool one = task.num_queries * task.num_values == 1;
  std::string_view type = TypeName(task.value);
  if (one) type.remove_suffix(1);
  const auto fill = [&](std::string_view part) {
    std::string text = one ? Singular(std::string(part)) : std::string(part);
    return ReplaceAll(ReplaceAll(std::move(text), "{type}", type), "{query}", Enumerate(keys));
  };
  question.before = fill(kBefore);
  question.after = fill(kAfter);
  SetAnswer(question);
  return question;
}

NeedleQuestion MakeChains(const NeedleTask& task, SplitMix64& random) {
  const auto num_chains = static_cast<size_t>(task.num_chains);
  const auto length = static_cast<size_t>(task.num_hops) + 1;  // variables per chain
  const std::vector<std::string> names = MakeDistinct(num_chains * length, [&] {
    std::string name;
    for (int i = 0; i < 5; ++i) name += static_cast<char>('A' + random.Below(26));
    return name;
  });
  const std::vector<std::string> starts =
      MakeDistinct(num_chains, [&] { return std::to_string(random.Between(10000, 99999)); });
  // Draws which chain has each place in the text. A chain's hops fill its places in order.
  std::vector<size_t> owners;
  for (size_t i = 0; i < names.size(); ++i) owners.push_back(i % num_chains);
  random.Shuffle(owners);
  NeedleQuestion question;
  std::vector<size_t> next(num_chains, 0);
  for (const size_t chain : owners) {
    const size_t hop = next[chain]++;
    const std::string* name = &names[chain * length + hop];
    question.hidden.push_back({hop == 0 ? fmt::format("VAR {} = {}", *name, starts[chain])
                                        : fmt::format("VAR {} = VAR {}", *name, *(name - 1)),
                               chain == 0 ? static_cast<int>(hop) : -1});
  }
  question.values.assign(names.begin(), names.begin() + static_cast<ptrdiff_t>(length));
  question.before = kTrackBefore;
  question.after = ReplaceAll(ReplaceAll(std::string(kTrackAfter), "{query}", starts[0]), "{count}",
                              std::to_string(length));
  SetAnswer(question);
  return question;
}

}  // namespace

std::span<const NeedleTask> NeedleTasks() { return kTasks; }

NeedleQuestion MakeNeedleQuestion(const NeedleTask& task, const std::vector<std::string>& words,
                                  SplitMix64& random) {
  return task.num_chains > 0 ? MakeChains(task, random) : MakeNeedles(task, words, random);
}

std::string MakeDistractor(const NeedleQuestion& question, const std::vector<std::string>& words,
                           SplitMix64& random) {
  while (true) {
    const std::string key = MakeText(question.key, words, random);
    const std::string value = MakeText(question.value, words, random);
    const bool taken = std::any_of(
        question.hidden.begin(), question.hidden.end(), [&](const HiddenSentence& sentence) {
          return sentence.text.find(" " + key + " ") != std::string::npos ||
                 sentence.text.find(value) != std::string::npos;
        });
    if (!taken) return NeedleSentence(question.value, key, value);
  }
}

}  // namespace oscar
