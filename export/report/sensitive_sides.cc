// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/sensitive_sides.h"

#include <fmt/format.h>

#include <map>

namespace oscar {

std::string SensitiveSidesText(const Json& serving) {
  const Json sides = serving.value(Json::json_pointer("/auto/bits_by/sensitive"), Json());
  if (sides.is_null()) return "";
  std::map<double, std::string> at_least;  // names by required bits; 0: more than was tried
  for (const Json& side : sides) {
    std::string& text = at_least[side.value("bits", 0.0)];
    text += fmt::format("{}{} of layer {} ({:.0f} %)", text.empty() ? "" : ", ",
                        side.at("side") == "k" ? "keys" : "values", side.at("layer_id").get<int>(),
                        100 * side.at("share").get<double>());
  }
  if (at_least.empty()) return "no side of a layer needs more bits than the others";
  std::string text;
  for (const auto& [bits, of] : at_least) {
    text += text.empty() ? "" : "; ";
    text += bits > 0 ? fmt::format("at least {:g} bits are needed for {}", bits, of)
                     : fmt::format("more bits than were tried are needed for {}", of);
  }
  return text + "; in brackets, the share of the total cost of 2 bits to the next token";
}

}  // namespace oscar
