// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The name of an entry: ORG/MODEL and a version X.Y.Z. Both become file paths, also on systems that
// ignore case or reserve device names, so only a restricted set of names is accepted.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oscar {

// A name ORG/MODEL. Each part has 1 to 96 characters: letters, digits, '-', '_' and '.'. It begins
// with a letter or digit, does not end with '.' or '-', and does not contain ".." or "--". It is
// not a device name of Windows (CON, NUL.txt, ...).
struct ZooName {
  std::string org, model;
  std::string text() const { return org + "/" + model; }
  std::string folded() const;  // lower case; two names are the same if these are equal
  bool operator==(const ZooName&) const = default;
  auto operator<=>(const ZooName&) const = default;
};

// Returns the problem with one part of a name, or with "ORG/MODEL"; "" if there is none.
std::string NamePartProblem(std::string_view part);
std::string ZooNameProblem(std::string_view text);
ZooName ParseZooName(std::string_view text, std::string_view what);  // throws InputError

// A semantic version. MAJOR changes with the base model or a convention, MINOR with a new
// calibration, PATCH with the texts.
struct ZooVersion {
  int64_t major = 0, minor = 0, patch = 0;
  std::string text() const;
  ZooVersion NextMinor() const { return {major, minor + 1, 0}; }
  bool operator==(const ZooVersion&) const = default;
  auto operator<=>(const ZooVersion&) const = default;
};

// Parses "0.1.0": three decimal numbers below 1,000,000 without leading zeros, else nothing.
std::optional<ZooVersion> ParseZooVersion(std::string_view text);
ZooVersion ZooVersionOf(std::string_view text, std::string_view what);  // throws InputError

// A reference on a command line: ORG/MODEL, ORG/MODEL@latest, ORG/MODEL@X.Y.Z or
// ORG/MODEL@sha256:...
struct ZooReference {
  ZooName name;
  std::optional<ZooVersion> version = {};    // absent if none was given, or for @latest
  std::optional<std::string> identity = {};  // 64 hexadecimal digits; excludes a version
  std::string text() const;
};
ZooReference ParseZooReference(std::string_view text);  // throws UsageError

// A reference, possibly after a zoo: SOURCE/ORG/MODEL[@...]. Without a zoo, `source` is empty.
// hf:ORG/NAME[@REVISION] is a source with one version, whose entry may have another name.
struct ZooAddress {
  std::string source;
  ZooReference reference;                   // for a repository: its name on the Hub
  bool repository = false, pinned = false;  // `pinned`: a revision was given
};
ZooAddress ParseZooAddress(std::string_view text);  // throws UsageError

bool IsSha256Hex(std::string_view text);  // whether it is 64 lower-case hexadecimal digits

}  // namespace oscar
