// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "capture/text/data/packing.h"
#include "linalg/base/error.h"
#include "linalg/base/splitmix64.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

using Ids = std::vector<int32_t>;

Ids RandomIds(uint64_t seed, size_t count, size_t vocabulary = 5000) {
  SplitMix64 random(seed);
  Ids ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.Below(vocabulary));
  return ids;
}

DataSet Data(const std::vector<Ids>& documents) {
  DataSet data;
  data.name = "test data";
  for (size_t i = 0; i < documents.size(); ++i)
    data.documents.push_back({"doc:" + std::to_string(i + 1), documents[i]});
  data.digest = DataDigest(data.documents);
  return data;
}

OverlapResult Find(const DataSet& calibration, const DataSet& evaluation) {
  return FindOverlap(MakeFingerprints(calibration), calibration.digest, evaluation);
}

Ids Slice(const Ids& ids, size_t begin, size_t count) {
  return {ids.begin() + static_cast<ptrdiff_t>(begin),
          ids.begin() + static_cast<ptrdiff_t>(begin + count)};
}

Ids Joined(const Ids& a, const Ids& b, const Ids& c) {
  Ids all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// Computes the hash independently, from its definition in overlap.h. Artifacts store such hashes.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}
uint64_t WindowHash(const Ids& ids, size_t begin) {
  uint64_t sum = 0;
  for (size_t i = 0; i < 32; ++i) {
    uint64_t power = 1;
    for (size_t j = i; j < 31; ++j) power *= 0x9E3779B97F4A7C15U;
    sum += Mix(static_cast<uint64_t>(ids[begin + i]) + 1) * power;
  }
  return Mix(sum);
}

TEST(Overlap, FingerprintsFollowTheWrittenFormat) {
  const Ids ids = RandomIds(1, 3000);
  std::vector<uint64_t> expected;
  for (size_t begin = 0; begin + 32 <= ids.size(); ++begin) {
    if (const uint64_t hash = WindowHash(ids, begin); hash >> 59 == 0) expected.push_back(hash);
  }
  std::sort(expected.begin(), expected.end());
  const Fingerprints prints = MakeFingerprints(Data({ids}));
  EXPECT_EQ(prints.hashes, expected);
  EXPECT_EQ(prints.limit, uint64_t{1} << 59);
  EXPECT_NEAR(static_cast<double>(expected.size()), 3000.0 / 32, 30);  // 3 sigma
}

// Windows are chosen by content, so the position of the passage does not matter.
TEST(Overlap, SharedPassageIsFoundAtAnyOffset) {
  const Ids passage = RandomIds(2, 600);
  const DataSet calibration = Data({Joined(RandomIds(3, 777), passage, RandomIds(4, 100))});
  for (const size_t offset : {0, 1, 5, 31, 64, 1000}) {
    const OverlapResult result =
        Find(calibration, Data({Joined(RandomIds(5, offset), passage, {})}));
    EXPECT_GE(result.shared, 8) << offset;
    EXPECT_EQ(result.refused, true) << offset;
  }
  EXPECT_EQ(Find(calibration, Data({RandomIds(6, 5000)})).shared, 0);
}

TEST(Overlap, EqualDataIsRefusedHoweverShort) {
  const DataSet data = Data({{1, 2, 3}});
  const OverlapResult result = Find(data, data);
  EXPECT_EQ(result.windows, 0);
  EXPECT_TRUE(result.same_data);
  EXPECT_TRUE(result.refused);
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { CheckOverlap(result, data); }), "token for token"));
}

TEST(Overlap, OneLeakedDocumentIsRefused) {
  const Ids leaked = RandomIds(7, 500);
  const DataSet calibration = Data({leaked, RandomIds(8, 10000)});
  const DataSet evaluation = Data({RandomIds(9, 9500), leaked});
  const OverlapResult result = Find(calibration, evaluation);
  EXPECT_LT(result.fraction, kMaxOverlap);
  EXPECT_EQ(result.worst_origin, "doc:2");
  EXPECT_EQ(result.worst_fraction, 1.0);
  EXPECT_TRUE(result.refused);
  EXPECT_THROW(CheckOverlap(result, evaluation), InputError);
  EXPECT_EQ(result.ToJson()["worst"]["document"].get<std::string>(), "doc:2");
}

// Packing must not hide a leaked document. Its 500 tokens are an eighth of a sequence.
TEST(Overlap, LeakedDocumentIsFoundInsidePackedSequences) {
  const Ids leaked = RandomIds(7, 500);
  DataSet evaluation = Data({RandomIds(9, 2000), leaked, RandomIds(10, 2000)});
  PackDocuments({"", 6000}, 4096, 4096, evaluation);
  const OverlapResult result = Find(Data({leaked}), evaluation);
  EXPECT_LT(result.fraction, 0.2);
  EXPECT_EQ(result.worst_fraction, 1.0);
  EXPECT_EQ(result.worst_origin, "doc:1 to doc:3, from token 2001");
}

// Each of 20 documents has the same licence header of 120 tokens before 1000 tokens of its own.
TEST(Overlap, BoilerplateIsAllowed) {
  const Ids licence = RandomIds(11, 120);
  std::vector<Ids> one, other;
  for (uint64_t i = 0; i < 20; ++i) {
    one.push_back(Joined(licence, RandomIds(100 + i, 1000), {}));
    other.push_back(Joined(licence, RandomIds(200 + i, 1000), {}));
  }
  const OverlapResult result = Find(Data(one), Data(other));
  EXPECT_GT(result.shared, 0);
  EXPECT_FALSE(result.refused);
}

// Runs of one token, and patterns of few tokens, occur in any text.
TEST(Overlap, RulesAndBlanksAreNotCounted) {
  Ids table;
  for (int i = 0; i < 4000; ++i) table.push_back(i % 11);
  EXPECT_EQ(MakeFingerprints(Data({table, Ids(4000, 5)})).hashes.size(), 0u);
  // The same holds after richer text, for 4000 random tokens of only eight kinds.
  const size_t rich = MakeFingerprints(Data({RandomIds(20, 100)})).hashes.size();
  const Ids mixed = Joined(RandomIds(20, 100), RandomIds(21, 4000, 8), {});
  EXPECT_LE(MakeFingerprints(Data({mixed})).hashes.size(), rich + 5);
  EXPECT_GT(MakeFingerprints(Data({RandomIds(21, 4000, 100)})).hashes.size(), 80u);
}

TEST(Overlap, HugeDataIsCappedWithoutBias) {
  const Ids ids = RandomIds(12, 1'500'000);
  const DataSet calibration = Data({ids});
  const Fingerprints prints = MakeFingerprints(calibration);
  EXPECT_EQ(prints.hashes.size(), kMaxFingerprints);
  EXPECT_LT(prints.limit, kOverlapLimit);
  EXPECT_LT(prints.hashes.back(), prints.limit);
  const DataSet evaluation = Data({Joined(Slice(ids, 700'000, 20'000), RandomIds(13, 20'000), {})});
  EXPECT_NEAR(FindOverlap(prints, "", evaluation).fraction, 0.5, 0.1);
}

TEST(Overlap, JsonRoundTrip) {
  const Fingerprints prints = MakeFingerprints(Data({RandomIds(14, 2000)}));
  const Json json = FingerprintsToJson(prints);
  EXPECT_EQ(FingerprintsFromJson(json, "manifest.json"), prints);
  EXPECT_EQ(FingerprintsFromJson(FingerprintsToJson({}), "manifest.json"), Fingerprints());
  EXPECT_EQ(json["limit"].get<std::string>(), "0800000000000000");
}

TEST(Overlap, HostileJsonIsRefused) {
  const Json good = FingerprintsToJson(MakeFingerprints(Data({RandomIds(14, 2000)})));
  const std::string hashes = good["hashes"];
  const std::vector<std::function<void(Json&)>> damages = {
      [](Json& j) { j = Json::array(); },
      [](Json& j) { j["format"] = "oscar-overlap-2"; },
      [](Json& j) { j["extra"] = 1; },
      [](Json& j) { j.erase("limit"); },
      [](Json& j) { j["limit"] = "0800000000000001"; },
      [](Json& j) { j["limit"] = "0000000000000000"; },
      [](Json& j) { j["limit"] = 5; },
      [](Json& j) { j["hashes"] = "00"; },
      [&](Json& j) { j["hashes"] = hashes + hashes; },
      [&](Json& j) { j["hashes"] = "G" + hashes.substr(1); },
      [&](Json& j) { j["hashes"] = "-" + hashes.substr(1); },
      [&](Json& j) { j["hashes"] = "f" + hashes.substr(1); },
      [&](Json& j) { j["hashes"] = hashes.substr(0, 16) + hashes; },
      [](Json& j) { j["hashes"] = std::string(16 * (kMaxFingerprints + 1), '0'); },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Json bad = good;
    damages[i](bad);
    EXPECT_THROW(FingerprintsFromJson(bad, "manifest.json"), InputError) << i;
  }
}

TEST(Overlap, ManifestOfAMergedArtifact) {
  const DataSet first = Data({RandomIds(15, 3000)}), second = Data({RandomIds(16, 3000)});
  const auto describe = [](const DataSet& data) {
    return Json{{"digest", data.digest},
                {"fingerprints", FingerprintsToJson(MakeFingerprints(data))}};
  };
  const Json merged = {{"name", "merge of 2"}, {"sources", {describe(first), describe(second)}}};
  for (const DataSet& leaked : {first, second}) {
    EXPECT_TRUE(FindOverlap(merged, "manifest.json", leaked).same_data);
    EXPECT_EQ(FindOverlap(merged, "manifest.json", leaked).fraction, 1.0);
  }
  const DataSet other = Data({RandomIds(17, 3000)});
  EXPECT_FALSE(FindOverlap(merged, "manifest.json", other).refused);
  EXPECT_TRUE(FindOverlap(merged, "manifest.json", other).known);
  EXPECT_TRUE(FindOverlap(describe(second), "manifest.json", second).refused);
  // A manifest from before fingerprints were recorded still reveals equal data, but no other
  // overlap.
  const OverlapResult old = FindOverlap({{"digest", first.digest}}, "manifest.json", first);
  EXPECT_TRUE(old.same_data);
  EXPECT_FALSE(old.known);
  EXPECT_THROW(FindOverlap(Json(3), "manifest.json", first), InputError);
  EXPECT_THROW(FindOverlap({{"sources", 3}}, "manifest.json", first), InputError);
}

// The limits were chosen on these packs, which are two halves of one crawl of documentation pages.
TEST(Overlap, CalibrationAndHeldOutPromptsPass) {
  OSCAR_PACK_OR_SKIP(model, "models/proof-qwen3");
  OSCAR_PACK_OR_SKIP(calibration, "calibration");
  const Tokenizer tokenizer = Tokenizer::Load(model / "tokenizer.json");
  const auto load = [&](const char* file, int64_t budget) {
    return LoadData({{calibration / file}, budget, 1 << 20}, &tokenizer, 8256);
  };
  const DataSet prompts = load("prompts.jsonl", 1 << 24);
  const DataSet held_out = load("heldout.jsonl", 1 << 24);
  for (const auto& [one, other] :
       {std::pair(&prompts, &held_out), std::pair(&held_out, &prompts)}) {
    const OverlapResult result = Find(*one, *other);
    EXPECT_LT(result.fraction, 0.03);
    EXPECT_LT(result.worst_fraction, 0.6);
    EXPECT_FALSE(result.refused);
  }
  EXPECT_TRUE(Find(prompts, prompts).refused);
  EXPECT_TRUE(Find(load("prompts.jsonl", 16384), prompts).refused);
}

}  // namespace
}  // namespace oscar
