// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables with sums that are right: markdown and CSV, each followed by questions about it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "capture/text/corpus/genres.h"

namespace oscar {
namespace {

constexpr std::array<std::string_view, 12> kRegions = {"North",   "South",  "East",    "West",
                                                       "Coast",   "Valley", "Islands", "Highlands",
                                                       "Capital", "Border", "Lakes",   "Plains"};
constexpr std::array<std::string_view, 8> kGoods = {"wheat", "timber", "copper", "wool",
                                                    "salt",  "paper",  "glass",  "tea"};

struct Table {
  std::vector<std::string_view> goods;           // [columns]
  std::vector<std::string_view> regions;         // [rows]
  std::vector<std::vector<int64_t>> quantities;  // [rows][columns]
};

Table MakeTable(SplitMix64& random) {
  Table table;
  const size_t columns = 3 + random.Below(3);
  const size_t first = random.Below(kGoods.size());
  for (size_t i = 0; i < columns; ++i) table.goods.push_back(kGoods[(first + i) % kGoods.size()]);
  const size_t rows = 5 + random.Below(7);
  const size_t start = random.Below(kRegions.size());
  for (size_t i = 0; i < rows; ++i) {
    table.regions.push_back(kRegions[(start + i) % kRegions.size()]);
    auto& row = table.quantities.emplace_back();
    for (size_t c = 0; c < columns; ++c) row.push_back(random.Between(3, 980));
  }
  return table;
}

std::string Render(const Table& table, int64_t year, bool markdown) {
  const std::string_view between = markdown ? " | " : ",";
  const std::string_view begin = markdown ? "| " : "";
  const std::string_view end = markdown ? " |\n" : "\n";
  std::string text = fmt::format("{}region{}{}{}total{}", begin, between,
                                 fmt::join(table.goods, between), between, end);
  if (markdown) {
    text += "|---|";
    for (size_t i = 0; i <= table.goods.size(); ++i) text += "---:|";
    text += "\n";
  }
  for (size_t r = 0; r < table.regions.size(); ++r) {
    int64_t total = 0;
    for (const int64_t quantity : table.quantities[r]) total += quantity;
    text += fmt::format("{}{}{}{}{}{}{}", begin, table.regions[r], between,
                        fmt::join(table.quantities[r], between), between, total, end);
  }
  return markdown ? fmt::format("## Trade in {}\n\n{}", year, text)
                  : fmt::format("# trade in {}, tonnes\n{}", year, text);
}

std::string Questions(const Table& table, SplitMix64& random) {
  std::string text = "\n";
  for (int i = 0; i < 3; ++i) {
    const size_t row = random.Below(table.regions.size());
    const size_t column = random.Below(table.goods.size());
    text += fmt::format("How much {} did {} report? {} tonnes.\n", table.goods[column],
                        table.regions[row], table.quantities[row][column]);
  }
  const size_t column = random.Below(table.goods.size());
  size_t best = 0;
  for (size_t r = 1; r < table.regions.size(); ++r) {
    if (table.quantities[r][column] > table.quantities[best][column]) best = r;
  }
  return text + fmt::format("The largest entry for {} is that of {}, with {}.\n",
                            table.goods[column], table.regions[best],
                            table.quantities[best][column]);
}

}  // namespace

std::string MakeTables(SplitMix64& random, size_t target_bytes, size_t variant) {
  int64_t year = random.Between(1890, 1990);
  return Fill(target_bytes, "\n", [&] {
    const Table table = MakeTable(random);
    return Render(table, year++, variant % 2 == 0) + Questions(table, random);
  });
}

}  // namespace oscar
