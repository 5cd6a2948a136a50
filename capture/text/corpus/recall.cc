// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Long-range recall: something is stated early and needed again hundreds to thousands of tokens
// later, so that attention must reach far behind the recent tokens. Everything between is prose.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "capture/text/corpus/genres.h"

namespace oscar {
namespace {

constexpr std::array<std::string_view, 16> kKeys = {
    "amber",  "birch",   "cobalt", "dune",  "ember",  "fjord",  "garnet", "harbor",
    "indigo", "juniper", "karst",  "lotus", "meadow", "nectar", "opal",   "prairie"};
constexpr std::array<std::string_view, 12> kColours = {"red",    "blue", "green",  "black",
                                                       "white",  "grey", "yellow", "brown",
                                                       "violet", "pink", "gold",   "silver"};

std::string Filler(SplitMix64& random, size_t target_bytes) {
  std::string text = MakeProse(random, target_bytes, random.Below(6));
  return text.substr(text.find('\n') + 2);  // without the title
}

// Keys in a random order, each once.
std::vector<std::string_view> Shuffled(SplitMix64& random) {
  std::vector<std::string_view> keys(kKeys.begin(), kKeys.end());
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Below(i)]);
  return keys;
}

// A list of passwords at the beginning, asked for at the end and in between.
std::string KeyValue(SplitMix64& random, size_t target_bytes) {
  const std::vector<std::string_view> keys = Shuffled(random);
  std::vector<std::string> values;
  std::string text = "Remember these entries; they are needed later.\n\n";
  for (const std::string_view key : keys) {
    const std::string_view first = random.Pick(kColours);
    const int64_t number = random.Between(1000, 9999);
    values.push_back(fmt::format("{}-{}-{}", first, number, random.Pick(kColours)));
    text += fmt::format("{} = {}\n", key, values.back());
  }
  const size_t rounds = 4;
  for (size_t round = 0; round < rounds; ++round) {
    text += "\n" + Filler(random, target_bytes / (rounds + 1)) + "\n";
    for (size_t i = round; i < keys.size(); i += rounds) {
      text += fmt::format("What was the entry for {}? {}\n", keys[i], values[i]);
    }
  }
  text += "\nAll entries once more:\n";
  for (size_t i = 0; i < keys.size(); ++i) text += fmt::format("{} = {}\n", keys[i], values[i]);
  return text;
}

// Single odd sentences hidden in prose, all asked for at the end.
std::string Needles(SplitMix64& random, size_t target_bytes) {
  const std::vector<std::string_view> keys = Shuffled(random);
  constexpr size_t kNumNeedles = 6;
  std::string text;
  std::string questions = "Questions about the text above.\n";
  for (size_t i = 0; i < kNumNeedles; ++i) {
    const int64_t number = random.Between(10000, 99999);
    const std::string_view colour = random.Pick(kColours);
    text += Filler(random, target_bytes / kNumNeedles) +
            fmt::format("\nThe secret number of the {} {} box is {}.\n\n", colour, keys[i], number);
    questions += fmt::format(
        "What is the secret number of the {} {} box? The secret number of the "
        "{} {} box is {}.\n",
        colour, keys[i], colour, keys[i], number);
  }
  return text + questions;
}

// A passage that comes back word for word, with other text between.
std::string Copies(SplitMix64& random, size_t target_bytes) {
  const std::string passage = Filler(random, target_bytes / 5);
  std::string text = "Original:\n" + passage;
  for (int copy = 1; copy <= 2; ++copy) {
    text += "\n" + Filler(random, target_bytes / 6);
    text += fmt::format("\nCopy {} of the original, unchanged:\n{}", copy, passage);
  }
  return text;
}

// A register given as a table, then used in sentences in another order.
std::string Register(SplitMix64& random, size_t target_bytes) {
  std::vector<std::string_view> keys = Shuffled(random);
  struct Row {
    std::string_view key, colour;
    int64_t shelf, weight;
  };
  std::vector<Row> rows;
  std::string text = "| item | colour | shelf | weight (g) |\n|---|---|---:|---:|\n";
  for (const std::string_view key : keys) {
    rows.push_back({key, random.Pick(kColours), random.Between(1, 60), random.Between(100, 9900)});
    text += fmt::format("| {} | {} | {} | {} |\n", key, rows.back().colour, rows.back().shelf,
                        rows.back().weight);
  }
  for (int part = 0; part < 3; ++part) {
    text += "\n" + Filler(random, target_bytes / 4) + "\nFrom the register at the beginning:\n";
    for (int i = 0; i < 5; ++i) {
      const Row& row = random.Pick(rows);
      text += fmt::format("- {} is {}, lies on shelf {} and weighs {} g.\n", row.key, row.colour,
                          row.shelf, row.weight);
    }
  }
  return text;
}

}  // namespace

std::string MakeRecall(SplitMix64& random, size_t target_bytes, size_t variant) {
  static constexpr std::string (*kKinds[])(SplitMix64&, size_t) = {KeyValue, Needles, Copies,
                                                                   Register};
  return kKinds[variant % std::size(kKinds)](random, target_bytes);
}

}  // namespace oscar
