// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/corpus/code.h"

namespace oscar {

std::span<const Rule> CompiledLanguageRules() {
  static const std::vector<Rule> rules = {
      {"cpp_head", {R"(// «^main» store: keeps every «main» in memory and writes changes to a log.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace «main»s {

)"}},
      {"cpp_type", {"int64_t", "uint32_t", "double", "std::string", "bool", "size_t"}},
      {"cpp_item",
       {R"(struct «t=noun»_«p=part» {
  «cpp_type» «f=part» = {};
  «cpp_type» «adjective»_«part» = {};
  std::vector<«cpp_type»> «noun»s;

  bool operator==(const «t»_«p»& other) const { return «f» == other.«f»; }
};
)",
        R"(// Returns how many «n=noun»s are «a=adjective»; O(n).
size_t «^v=verb»«^n»s(const std::vector<«^n»>& «n»s, size_t limit) {
  size_t «p=part» = 0;
  for (const auto& «n» : «n»s) {
    if (!«n».is_«a»()) continue;
    if (++«p» == limit) break;  // «why»
  }
  return «p»;
}
)",
        R"(void «^main»Store::«^v=verb»(const std::string& «k=part», uint64_t «n=noun»_id) {
  auto it = «main»s_.find(«k»);
  if (it == «main»s_.end()) {
    throw std::out_of_range("«message»: " + «k»);
  }
  it->second.«p=part» += «n»_id % «number»;
  if (it->second.«p» > kMax«^p») {
    it->second.«p» = kMax«^p»;  // «why»
  }
}
)",
        R"(template <typename Iterator>
auto «^v=verb»«^n=noun»(Iterator first, Iterator last, double «p=part») {
  double sum = 0.0;
  while (first != last) {
    sum += *first * «p»;
    ++first;
  }
  return sum / «2-9».0;
}
)",
        R"(TEST(«^n=noun»Test, «^verb»«^a=adjective») {
  «^n»Table table(/*«part»=*/«number»);
  for (int i = 0; i < «3-40»; ++i) table.Insert(i, i * «2-9»);
  EXPECT_EQ(table.«part»(), «10-300»);
  EXPECT_TRUE(table.«a»());
}
)",
        R"(std::optional<«^a=noun»> «^verb»(«^a»Kind kind) {
  switch (kind) {
    case «^a»Kind::k«^b=adjective»:
      return «verb»_«a»(«number»);
    case «^a»Kind::kNot«^b»:
      ++«part»_;
      [[fallthrough]];
    default:
      log(Level::kWarning, "«message»");
      return std::nullopt;
  }
}
)"}},
      {"js_head", {R"(// «^main» service, used by the dashboard.
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";

const PAGE_SIZE = «number»;
const cache = new Map();

)"}},
      {"js_item",
       {R"(export async function «v=verb»«^n=noun»(«n»Id, { «p=part» = «number» } = {}) {
  const response = await fetch(`/api/«n»s/${«n»Id}?«p»=${«p»}`);
  if (!response.ok) {
    throw new Error(`«message» (${response.status})`);
  }
  const { items } = await response.json();
  return items.filter((item) => item.«a=adjective» && item.«p» < «p»);
}
)",
        R"(function «v=verb»«^n=noun»s(«n»s) {
  return «n»s
    .map((«n») => ({ ...«n», «p=part»: Number(«n».«p» ?? 0) }))
    .sort((a, b) => b.«p» - a.«p»)
    .slice(0, «5-50»);
}
)",
        R"(document.querySelector("#«n=noun»-«part»").addEventListener("click", (event) => {
  event.preventDefault();
  const «p=part» = event.target.dataset.«p»;
  if (!cache.has(«p»)) cache.set(«p», []);
  cache.get(«p»).push(Date.now()); // «why»
});
)",
        R"(class «^n=noun»Queue {
  #«a=adjective» = [];

  constructor(limit = «number») {
    this.limit = limit;
  }

  push(«n») {
    if (this.#«a».length >= this.limit) {
      console.warn("«message»", «n».id);
      return false;
    }
    this.#«a».push(«n»);
    return true;
  }
}
)",
        R"(describe("«verb» «n=noun»", () => {
  it("keeps «a=adjective» «n»s", async () => {
    const result = await «verb»«^n»("«n»-«100-999»", { «part»: «number» });
    expect(result).toHaveLength(«2-20»);
    expect(result.every((x) => x.«a»)).toBe(true);
  });
});
)"}},
  };
  return rules;
}

}  // namespace oscar
