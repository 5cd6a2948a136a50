// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One harness for each reader of foreign bytes. A harness does more than survive: what it accepts
// it writes and reads back, and what it refuses it refuses with an Error. Any other exception, a
// broken FUZZ_CHECK, a second of time or 200 MB is a finding. Trap: a harness is called a million
// times in one process, so it keeps nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/digest.h"
#include "capture/files/mapped_file.h"
#include "capture/files/strict_json.h"
#include "linalg/base/error.h"

namespace oscar::fuzz {

using Random = std::mt19937_64;

// Built for a campaign, whose seeds are more and smaller: bugs are planted where no seed of a test
// run shows them.
inline constexpr bool kCampaign = !kComparesDigests;

// A value, a member or its name of one JSON taken into another; nothing where either is none.
std::string SpliceJson(const std::string& input, const std::string& other, Random& random);

struct Harness {
  std::string_view name;
  // Throws Error for what is refused.
  void (*run)(std::string_view input);
  // Small valid inputs, made by our writers or taken from tests/data; of a campaign, also what is
  // refused for something of its own.
  std::vector<std::string> (*seeds)();
  // Changes the structure, where bytes alone stop at a length or a quote; null: bytes alone.
  std::string (*mutate)(const std::string& input, Random& random) = nullptr;
  size_t max_bytes = 8192;
  uint64_t slowness = 1;  // the plain driver runs so many times fewer
  // Parts of one input in another; empty where they have none.
  std::string (*splice)(const std::string& input, const std::string& other,
                        Random& random) = SpliceJson;
  // Makes what all inputs share, before libFuzzer counts: its edges are none of an input's.
  void (*prepare)() = nullptr;
};

std::span<const Harness* const> AllHarnesses();

// `run`; a refusal is fine, anything else ends the process with its reason.
void RunOne(const Harness& harness, std::string_view input);

// Parses JSON for harnesses and mutators. The result is discarded if the text is not JSON, or so
// deep that recursion would overflow the stack.
Json ParseLoosely(std::string_view text);

// Some bytes changed, added, removed or repeated; at most `max_bytes`.
std::string MutateBytes(std::string input, size_t max_bytes, Random& random);
// Changes a value, a member or its name, copies one from elsewhere or leaves one out; changes bytes
// if the input is not JSON.
std::string MutateJson(const std::string& input, Random& random);
// Does the same with JSON before a NUL, and changes bytes after it.
std::string MutateJsonAndText(const std::string& input, Random& random);
// Does the same with the JSON that follows its length at the start of a safetensors file.
std::string MutateSafetensors(const std::string& input, Random& random);
// The JSON in it with one of its values left out, set to one of a few, or a member of an unknown
// name in its place, for each value; of those that stand at the same place in the elements of an
// array, for the first, the last, and all.
std::vector<std::string> ChangeEach(const std::string& input);
// The members of the JSON in each, the first of each path; all elements of an array have one path.
std::map<std::string, Json> MembersOf(const std::vector<std::string>& inputs);
// The JSON in it with one of `members` that it lacks at that place, as it is there and of a few
// other values.
std::vector<std::string> AddEach(const std::string& input,
                                 const std::map<std::string, Json>& members);
// JSON as no writer of ours spells it, right and wrong: numbers, escapes, UTF-8, commas.
const std::vector<std::string>& JsonSpellings();
// The JSON in it with its first value spelled in each of these ways.
std::vector<std::string> SpellEach(const std::string& input);

// Returns the files in `folder` of tests/data that end in `name` and have at most `max_bytes`.
std::vector<std::string> SeedFiles(std::string_view folder, std::string_view name,
                                   size_t max_bytes);

// Returns the seeds that `run` does not refuse.
std::vector<std::string> Accepted(std::vector<std::string> seeds, void (*run)(std::string_view));
// The lines of `file` of tests/data.
std::vector<Json> SeedRows(std::string_view file);

inline std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline MappedFile FileOf(std::string_view bytes, const char* name = "input") {
  return MappedFile::Of(BytesOf(bytes), name);
}
// A folder in memory of this process, for writers that need one.
const std::filesystem::path& Scratch();
std::string ReadAll(const std::filesystem::path& path);
void WriteAll(const std::filesystem::path& path, std::string_view bytes);

// A second opinion on what capture/files/utf8.h says.
void CheckUtf8(std::string_view text);

[[noreturn]] void Finding(const char* file, int line, const std::string& what);

}  // namespace oscar::fuzz

// Reports a finding unless `condition`, which must hold for every accepted input, is true.
#define FUZZ_CHECK(condition)                                                 \
  do {                                                                        \
    if (!(condition)) ::oscar::fuzz::Finding(__FILE__, __LINE__, #condition); \
  } while (false)
