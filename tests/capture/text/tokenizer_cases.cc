// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/text/tokenizer_cases.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace oscar {
namespace {

std::vector<nlohmann::json> ReadLines(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

}  // namespace

CaseCount CheckEncodings(const Tokenizer& tokenizer, const std::filesystem::path& file) {
  CaseCount count;
  for (const nlohmann::json& row : ReadLines(file)) {
    ++count.total;
    const nlohmann::json ids = tokenizer.Encode(row.at("text").get<std::string>(),
                                                row.at("add_special_tokens").get<bool>());
    if (ids == row.at("ids")) continue;
    count.failures.push_back(row.at("text").dump() + " gives " + ids.dump() + ", expected " +
                             row.at("ids").dump());
  }
  return count;
}

CaseCount CheckDecodings(const Tokenizer& tokenizer, const std::filesystem::path& file) {
  CaseCount count;
  for (const nlohmann::json& row : ReadLines(file)) {
    ++count.total;
    const std::string text = tokenizer.Decode(row.at("ids").get<std::vector<int32_t>>(),
                                              row.at("skip_special_tokens").get<bool>());
    if (text == row.at("text").get<std::string>()) continue;
    count.failures.push_back(row.at("ids").dump() + " gives " + nlohmann::json(text).dump() +
                             ", expected " + row.at("text").dump());
  }
  return count;
}

}  // namespace oscar
