// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/zoo_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kMaxPart = 96;  // bytes
constexpr std::string_view kSha256 = "sha256:";

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Returns whether this is CON, PRN, AUX, NUL, COM0 to COM9 or LPT0 to LPT9, alone or before a dot.
bool IsDeviceName(std::string_view part) {
  const std::string stem = Lower(part.substr(0, part.find('.')));
  if (stem == "con" || stem == "prn" || stem == "aux" || stem == "nul") return true;
  return stem.size() == 4 && (stem.starts_with("com") || stem.starts_with("lpt")) &&
         stem[3] >= '0' && stem[3] <= '9';
}

}  // namespace

std::string NamePartProblem(std::string_view part) {
  if (part.empty()) return "is empty";
  if (part.size() > kMaxPart)
    return fmt::format("is {} bytes long, expected at most {}", part.size(), kMaxPart);
  const auto allowed = [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; };
  if (!std::all_of(part.begin(), part.end(), allowed))
    return "holds something other than letters, digits, '-', '_' and '.'";
  if (!IsAlnum(part.front())) return "does not begin with a letter or digit";
  if (part.back() == '.' || part.back() == '-') return "ends with '.' or '-'";
  if (part.find("..") != part.npos || part.find("--") != part.npos) return "holds '..' or '--'";
  if (IsDeviceName(part)) return "is a device name on some systems";
  return "";
}

std::string ZooName::folded() const { return Lower(text()); }

std::string ZooNameProblem(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos)
    return fmt::format("{} is not ORG/MODEL, for example Qwen/Qwen3-8B", Quoted(text));
  for (const std::string_view part : {text.substr(0, slash), text.substr(slash + 1)}) {
    if (const std::string problem = NamePartProblem(part); !problem.empty())
      return fmt::format("{} is not ORG/MODEL: the part {} {}", Quoted(text), Quoted(part),
                         problem);
  }
  return "";
}

ZooName ParseZooName(std::string_view text, std::string_view what) {
  if (const std::string problem = ZooNameProblem(text); !problem.empty())
    throw InputError(fmt::format("{}: {}", what, problem));
  const size_t slash = text.find('/');
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::string ZooVersion::text() const { return fmt::format("{}.{}.{}", major, minor, patch); }

std::optional<ZooVersion> ParseZooVersion(std::string_view text) {
  std::array<int64_t, 3> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool last = i + 1 == numbers.size();
    const size_t end = last ? text.size() : text.find('.');
    if (end == text.npos) return std::nullopt;
    const std::string_view digits = text.substr(0, end);
    const bool plain =
        !digits.empty() && digits.size() <= 6 && (digits.size() == 1 || digits[0] != '0') &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!plain) return std::nullopt;
    std::from_chars(digits.data(), digits.data() + digits.size(), numbers[i]);
    text.remove_prefix(last ? end : end + 1);
  }
  return ZooVersion{numbers[0], numbers[1], numbers[2]};
}

ZooVersion ZooVersionOf(std::string_view text, std::string_view what) {
  const auto version = ParseZooVersion(text);
  if (!version) {
    throw InputError(fmt::format("{}: {} is not a version, expected X.Y.Z, for example 0.1.0", what,
                                 Quoted(text)));
  }
  return *version;
}

bool IsSha256Hex(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string ZooReference::text() const {
  if (identity) return name.text() + "@sha256:" + *identity;
  return version ? name.text() + "@" + version->text() : name.text();
}

ZooReference ParseZooReference(std::string_view text) {
  const size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  if (const std::string problem = ZooNameProblem(name); !problem.empty()) throw UsageError(problem);
  ZooReference reference{ParseZooName(name, "name")};
  if (at == text.npos || text.substr(at + 1) == "latest") return reference;
  const std::string_view which = text.substr(at + 1);
  if (which.starts_with(kSha256)) {
    reference.identity = which.substr(kSha256.size());
    if (IsSha256Hex(*reference.identity)) return reference;
    throw UsageError(fmt::format("{}: expected 64 lower-case hexadecimal digits after '@{}'",
                                 Escaped(text), kSha256));
  }
  reference.version = ParseZooVersion(which);
  if (!reference.version) {
    throw UsageError(fmt::format("{}: expected X.Y.Z, latest or sha256:... after '@', found {}",
                                 Escaped(text), Quoted(which)));
  }
  return reference;
}

ZooAddress ParseZooAddress(std::string_view text) {
  if (text.starts_with("hf:")) {
    const std::string_view rest = text.substr(3), name = rest.substr(0, rest.find('@'));
    if (ZooNameProblem(name).empty())
      return {std::string(text), {ParseZooName(name, "name")}, true, name.size() < rest.size()};
  }
  const size_t model = text.substr(0, text.find('@', text.rfind('/') + 1)).rfind('/');
  const size_t org = model == text.npos || model == 0 ? text.npos : text.rfind('/', model - 1);
  if (org == text.npos) return {"", ParseZooReference(text)};
  const std::string_view source = text.substr(0, org);
  return {std::string(source.empty() ? "/" : source), ParseZooReference(text.substr(org + 1))};
}

}  // namespace oscar
