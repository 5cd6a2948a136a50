// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/trust/look_alike.h"

namespace oscar {

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

}  // namespace oscar
