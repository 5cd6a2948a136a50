// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/needle_words.h"

#include <array>

namespace oscar {

std::span<const std::string_view> NeedleAdjectives() {
  static constexpr auto kWords = std::to_array<std::string_view>({
      "ancient", "awkward", "bitter", "blunt",    "brave",  "brittle", "broad",  "busy",
      "calm",    "careful", "cheap",  "clever",   "coarse", "cosy",    "crisp",  "curious",
      "damp",    "distant", "dusty",  "eager",    "early",  "faint",   "famous", "fierce",
      "foggy",   "fragile", "gentle", "giant",    "glossy", "greedy",  "hollow", "honest",
      "humble",  "idle",    "jolly",  "late",     "lazy",   "loud",    "lucky",  "mellow",
      "misty",   "modest",  "narrow", "noisy",    "odd",    "patient", "plain",  "polite",
      "proud",   "quiet",   "rapid",  "rusty",    "salty",  "shallow", "shy",    "sleepy",
      "slow",    "solid",   "steep",  "stubborn", "swift",  "tall",    "tidy",   "tiny",
      "vast",    "velvet",  "warm",   "weary",    "wild",   "wise",    "wooden", "young",
  });
  return kWords;
}

std::span<const std::string_view> NeedleNouns() {
  static constexpr auto kWords = std::to_array<std::string_view>({
      "acorn",   "anchor",  "badger",  "ballad",  "basket",   "beacon",  "blanket",  "bridge",
      "bucket",  "button",  "cabin",   "candle",  "canyon",   "carpet",  "castle",   "cello",
      "chapel",  "cherry",  "comet",   "cottage", "cradle",   "dolphin", "drum",     "eagle",
      "engine",  "falcon",  "feather", "ferry",   "fiddle",   "forest",  "fountain", "garden",
      "glacier", "goose",   "hammer",  "hedge",   "helmet",   "island",  "jacket",   "kettle",
      "ladder",  "lantern", "lemon",   "lizard",  "magnet",   "marble",  "mitten",   "monkey",
      "needle",  "orchard", "otter",   "paddle",  "pebble",   "pepper",  "piano",    "pigeon",
      "pillow",  "pocket",  "puzzle",  "rabbit",  "ribbon",   "rocket",  "saddle",   "shovel",
      "sparrow", "spoon",   "tunnel",  "turtle",  "umbrella", "valley",  "violin",   "walnut",
  });
  return kWords;
}

}  // namespace oscar
