// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/trust/look_alike.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/nearest.h"

namespace oscar {
namespace {

// Whether the two texts differ only by one inserted, removed or replaced digit.
bool DigitsDiffer(std::string_view a, std::string_view b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  std::string_view rest_a(in_a, a.end()), rest_b(in_b, b.end());
  while (!rest_a.empty() && !rest_b.empty() && rest_a.back() == rest_b.back()) {
    rest_a.remove_suffix(1);
    rest_b.remove_suffix(1);
  }
  const auto digits = [](std::string_view text) {
    return text.find_first_not_of("0123456789") == text.npos;
  };
  return digits(rest_a) && digits(rest_b);
}

// Returns why `part` may be mistaken for `other`; "" if it cannot be.
std::string Likeness(std::string_view part, std::string_view other) {
  constexpr size_t kLeast = 4;  // letters; many shorter names are one edit apart
  if (part == other) return "";
  if (LookSkeleton(part) == LookSkeleton(other)) return "looks like";
  if (std::min(part.size(), other.size()) < kLeast || EditDistance(part, other) > 1) return "";
  return "is one edit away from";
}

}  // namespace

std::string LookSkeleton(std::string_view name) {
  std::string skeleton;
  for (const char given : name) {
    char c = given >= 'A' && given <= 'Z' ? static_cast<char>(given - 'A' + 'a') : given;
    if (given == 'I' || c == '1' || c == 'i') c = 'l';
    if (c == '0') c = 'o';
    if (c == '5') c = 's';
    if (c == '_' || c == '.') c = '-';
    const char before = skeleton.empty() ? '\0' : skeleton.back();
    if ((c == 'n' && before == 'r') || (c == 'v' && before == 'v')) {
      skeleton.back() = c == 'n' ? 'm' : 'w';
    } else {
      skeleton += c;
    }
  }
  return skeleton;
}

bool LooksLike(std::string_view name, std::string_view other) {
  if (other.ends_with("/*")) {
    other.remove_suffix(2);
    name = name.substr(0, name.find('/'));
  }
  return name != other && LookSkeleton(name) == LookSkeleton(other);
}

std::string LookAlikeWarning(const ZooName& name, std::span<const ZooName> known) {
  if (std::ranges::find(known, name) != known.end()) return "";
  const auto of_org = [&](const ZooName& other) { return other.org == name.org; };
  const bool org_known = std::ranges::any_of(known, of_org);
  for (const ZooName& other : known) {
    const bool same_org = of_org(other);
    if (org_known && !same_org && !LooksLike(name.text(), other.text())) continue;
    const std::string &part = same_org ? name.model : name.org,
                      &seen = same_org ? other.model : other.org;
    const std::string likeness = Likeness(part, seen);
    if (likeness.empty() || (same_org && DigitsDiffer(part, seen))) continue;
    return fmt::format("{}: its {} {} that of {}; readers may confuse the two", name.text(),
                       same_org ? "model" : "organisation", likeness, other.text());
  }
  return "";
}

}  // namespace oscar
