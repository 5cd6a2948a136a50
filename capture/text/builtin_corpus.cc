// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/builtin_corpus.h"

#include <fmt/format.h>

#include <map>
#include <span>

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

// Fewer rounds, longer documents: the evaluation reaches behind the windows wherever it can.
constexpr Plan kEvaluationPlans[] = {
    {"prose", MakeEvaluationProse, 14000, 0},
    {"code", MakeCode, 6000, 1},
    {"recall", MakeRecall, 9000, 1},
    {"dialogue", MakeDialogue, 4000, 1},
    {"prose", MakeEvaluationProse, 12000, 1},
    {"structured", MakeStructured, 4000, 1},
    {"scripts", MakeScripts, 2500, 0},
    {"tables", MakeTables, 3000, 0},
    {"numbers", MakeNumbers, 2000, 0},
    {"prose", MakeEvaluationProse, 16000, 2},
    {"code", MakeCode, 6000, 0},
    {"recall", MakeRecall, 9000, 3},
    {"dialogue", MakeDialogue, 4000, 0},
    {"prose", MakeEvaluationProse, 13000, 3},
    {"structured", MakeStructured, 3500, 0},
    {"recall", MakeRecall, 8000, 0},
    {"code", MakeCode, 5000, 2},
    {"prose", MakeEvaluationProse, 9000, 0},
};

constexpr uint64_t kSeed = 0x6F73636172;
constexpr uint64_t kEvaluationSeed = 0x68656C646F7574;

std::vector<BuiltinDocument> Write(std::span<const Plan> plans, uint64_t seed) {
  std::vector<BuiltinDocument> corpus;
  std::map<std::string_view, int> written;
  for (const Plan& plan : plans) {
    // Each document has its own random stream, so that one can change without the others.
    SplitMix64 random(seed + corpus.size());
    corpus.push_back({fmt::format("{}-{}", plan.genre, ++written[plan.genre]),
                      plan.make(random, plan.bytes, plan.variant)});
  }
  return corpus;
}

}  // namespace

std::vector<BuiltinDocument> BuiltinCorpus() { return Write(kPlans, kSeed); }

std::vector<BuiltinDocument> BuiltinEvaluationCorpus() {
  return Write(kEvaluationPlans, kEvaluationSeed);
}

std::string BuiltinEvaluationProse(size_t target_bytes) {
  constexpr size_t kChapter = 8000;  // bytes; the topics take turns
  std::string text;
  for (size_t chapter = 0; text.size() < target_bytes; ++chapter) {
    SplitMix64 random(kEvaluationSeed + 1000 + chapter);
    const std::string part = MakeEvaluationProse(random, kChapter, chapter);
    text += part.substr(part.find("\n\n") + 2) + "\n";
  }
  return text;
}

std::string BuiltinCorpusDigest(const std::vector<BuiltinDocument>& corpus) {
  Sha256 digest;
  for (const BuiltinDocument& document : corpus) {
    digest.Add(document.name + '\0' + document.text + '\0');
  }
  return digest.FinishHex();
}

}  // namespace oscar
