// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One harness for each reader of untrusted bytes. It writes what a reader accepted and reads it
// back; a refusal must be an Error. Any other exception, a failed FUZZ_CHECK, or an input that
// takes more than 2 s (20 s under AddressSanitizer) or 200 MB is a finding. Trap: a harness is
// called a million times in one process, so it must not keep state.
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

// Whether this is built for a campaign, which has more and smaller seeds. In test runs, no seed may
// reach a planted bug.
inline constexpr bool kCampaign = !kComparesDigests;

// Copies values or members of the JSON in `other` into that in `input`. Returns "" if either has no
// JSON.
std::string SpliceJson(const std::string& input, const std::string& other, Random& random);

struct Harness {
  std::string_view name;
  // Throws Error if it refuses the input.
  void (*run)(std::string_view input);
  // Returns small valid inputs, made by our writers or taken from tests/data. A campaign also has
  // inputs that are refused, each for its own reason.
  std::vector<std::string> (*seeds)();
  // Changes the structure of an input, because byte changes alone fail at the first length or
  // quote. Null: only bytes are changed.
  std::string (*mutate)(const std::string& input, Random& random) = nullptr;
  size_t max_bytes = 8192;
  uint64_t slowness = 1;  // the plain driver divides its number of runs by this
  // Copies parts of `other` into `input`. Returns "" if there are none.
  std::string (*splice)(const std::string& input, const std::string& other,
                        Random& random) = SpliceJson;
  // Creates what all inputs share before libFuzzer counts coverage, so that no input is credited
  // for it.
  void (*prepare)() = nullptr;
};

std::span<const Harness* const> AllHarnesses();

// Calls `run`. A refusal is fine; any other exception is a finding and ends the process.
void RunOne(const Harness& harness, std::string_view input);

// Parses JSON for harnesses and mutators. The result is discarded if the text is not JSON, or so
// deep that recursion would overflow the stack.
Json ParseLoosely(std::string_view text);

// Changes, adds, removes or repeats some bytes; the result has at most `max_bytes`.
std::string MutateBytes(std::string input, size_t max_bytes, Random& random);
// Changes, renames, copies or removes values of the JSON; changes bytes if the input is not JSON.
std::string MutateJson(const std::string& input, Random& random);
// Does the same with JSON before a NUL, or changes the bytes after it.
std::string MutateJsonAndText(const std::string& input, Random& random);
// Does the same with the JSON header of a safetensors file.
std::string MutateSafetensors(const std::string& input, Random& random);
// Returns variants of the JSON in `input`: each value is replaced by a few others, removed, or
// moved to an unknown name. For values at the same path in all elements of an array, this is done
// to the first, to the last, and to all.
std::vector<std::string> ChangeEach(const std::string& input);
// Returns the members of the JSON in all inputs, the first one of each path. All elements of an
// array share a path.
std::map<std::string, Json> MembersOf(const std::vector<std::string>& inputs);
// Returns variants of the JSON in `input`, each with one of `members` added, with the member's own
// value or one of a few others.
std::vector<std::string> AddEach(const std::string& input,
                                 const std::map<std::string, Json>& members);
// Returns JSON texts that our writers never produce, valid and invalid: numbers, escapes, UTF-8,
// commas.
const std::vector<std::string>& JsonSpellings();
// Returns variants of the JSON in `input`: its first value is replaced by each of JsonSpellings().
std::vector<std::string> SpellEach(const std::string& input);

// Returns the files in `folder` of tests/data that end in `name` and have at most `max_bytes`.
std::vector<std::string> SeedFiles(std::string_view folder, std::string_view name,
                                   size_t max_bytes);

// Returns the seeds that `run` does not refuse.
std::vector<std::string> Accepted(std::vector<std::string> seeds, void (*run)(std::string_view));
// Returns the lines of `file` in tests/data, parsed as JSON.
std::vector<Json> SeedRows(std::string_view file);

inline std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline MappedFile FileOf(std::string_view bytes, const char* name = "input") {
  return MappedFile::Of(BytesOf(bytes), name);
}
// Returns a temporary folder of this process, for writers that need files.
const std::filesystem::path& Scratch();
std::string ReadAll(const std::filesystem::path& path);
void WriteAll(const std::filesystem::path& path, std::string_view bytes);

// Reports a finding unless the JSON library, too, takes `text` for UTF-8 (capture/files/utf8.h).
void CheckUtf8(std::string_view text);

[[noreturn]] void Finding(const char* file, int line, const std::string& what);

}  // namespace oscar::fuzz

// Reports a finding unless `condition`, which must hold for every accepted input, is true.
#define FUZZ_CHECK(condition)                                                 \
  do {                                                                        \
    if (!(condition)) ::oscar::fuzz::Finding(__FILE__, __LINE__, #condition); \
  } while (false)
