// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/corpus/code.h"

#include "capture/text/corpus/genres.h"

namespace oscar {

std::span<const Rule> IdentifierRules() {
  static const std::vector<Rule> rules = {
      {"noun",
       {"invoice", "sample", "packet", "node", "window", "token", "record", "sensor", "page", "job",
        "account", "route", "edge", "frame", "chunk", "ticket"}},
      {"part", {"size", "weight", "rank", "name", "status", "total", "delay", "quota", "owner"}},
      {"verb",
       {"load", "merge", "count", "filter", "update", "parse", "find", "apply", "collect",
        "split"}},
      {"adjective", {"active", "pending", "stale", "valid", "shared", "sorted", "empty", "recent"}},
      {"why",
       {"the caller may pass an empty list", "the index is one-based in the file",
        "two threads may get here at once", "an overflow here once took us a week to find",
        "the last page is usually shorter", "order matters for the digest",
        "retries are safe because the operation is idempotent"}},
      {"message",
       {"unexpected end of input", "«noun» not found", "limit of «10-500» exceeded",
        "«noun» «part» must be positive", "cannot open «noun» file", "duplicate «noun»"}},
      {"number", {"«2-9»", "«10-99»", "1024", "4096", "«100-999»", "64"}},
      {"host", {"alpha.example", "db2.internal", "build-«1-20».example", "localhost"}},
  };
  return rules;
}

std::string MakeCode(SplitMix64& random, size_t target_bytes, size_t variant) {
  static constexpr std::string_view kLanguages[] = {"cpp", "python", "js", "sql", "shell"};
  const std::string language(kLanguages[variant % std::size(kLanguages)]);
  std::vector<Rule> rules(IdentifierRules().begin(), IdentifierRules().end());
  for (const auto& more : {CompiledLanguageRules(), ScriptingLanguageRules()}) {
    rules.insert(rules.end(), more.begin(), more.end());
  }
  Grammar grammar(rules, random);
  grammar.Bind("main", grammar.Make("noun"));
  const std::string head = grammar.Make(language + "_head");
  return head + Fill(target_bytes, "\n", [&] { return grammar.Make(language + "_item"); });
}

}  // namespace oscar
