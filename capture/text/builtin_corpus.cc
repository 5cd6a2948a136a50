// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/builtin_corpus.h"

#include <fmt/format.h>

#include <map>

#include "capture/files/digest.h"
#include "capture/text/corpus/genres.h"

namespace oscar {
namespace {

struct Plan {
  std::string_view genre;
  GenreFunction make;
  size_t bytes;    // at least; with the tokenizer of tiny-qwen3 a token has 2 to 4
  size_t variant;  // topic, language or layout
};

// One round of all genres after the other, long and short documents mixed. The windows that a
// quantized cache keeps in full cover 320 tokens, so most documents are several times as long.
constexpr Plan kPlans[] = {
    {"prose", MakeProse, 6500, 0},
    {"recall", MakeRecall, 7000, 0},
    {"code", MakeCode, 5000, 0},
    {"dialogue", MakeDialogue, 4500, 0},
    {"structured", MakeStructured, 3500, 0},
    {"scripts", MakeScripts, 2000, 0},
    {"tables", MakeTables, 3000, 0},
    {"numbers", MakeNumbers, 1400, 0},

    {"prose", MakeProse, 8200, 1},
    {"recall", MakeRecall, 11500, 1},
    {"code", MakeCode, 5200, 1},
    {"dialogue", MakeDialogue, 700, 1},
    {"structured", MakeStructured, 3000, 1},
    {"scripts", MakeScripts, 400, 1},
    {"tables", MakeTables, 500, 1},
    {"numbers", MakeNumbers, 400, 1},

    {"prose", MakeProse, 900, 2},
    {"recall", MakeRecall, 8500, 2},
    {"code", MakeCode, 4500, 2},
    {"dialogue", MakeDialogue, 6500, 2},
    {"structured", MakeStructured, 3800, 2},
    {"scripts", MakeScripts, 2200, 2},
    {"tables", MakeTables, 3000, 1},
    {"numbers", MakeNumbers, 2300, 2},

    {"prose", MakeProse, 7500, 3},
    {"recall", MakeRecall, 7500, 3},
    {"code", MakeCode, 4000, 3},
    {"dialogue", MakeDialogue, 900, 0},
    {"structured", MakeStructured, 3300, 3},
    {"code", MakeCode, 3800, 4},
    {"prose", MakeProse, 700, 4},
    {"recall", MakeRecall, 7000, 0},
    {"prose", MakeProse, 5500, 5},
};

constexpr uint64_t kSeed = 0x6F73636172;

}  // namespace

std::vector<BuiltinDocument> BuiltinCorpus() {
  std::vector<BuiltinDocument> corpus;
  std::map<std::string_view, int> written;
  for (const Plan& plan : kPlans) {
    // Each document has its own random stream, so that one can change without the others.
    CorpusRandom random(kSeed + corpus.size());
    corpus.push_back({fmt::format("{}-{}", plan.genre, ++written[plan.genre]),
                      plan.make(random, plan.bytes, plan.variant)});
  }
  return corpus;
}

std::string BuiltinCorpusDigest(const std::vector<BuiltinDocument>& corpus) {
  Sha256 digest;
  for (const BuiltinDocument& document : corpus) {
    digest.Add(document.name + '\0' + document.text + '\0');
  }
  return digest.FinishHex();
}

}  // namespace oscar
