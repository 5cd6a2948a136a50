// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/gguf_file.h"

#include <gtest/gtest.h>

#include <functional>

#include "linalg/base/error.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Returns a small model with scalars, arrays, quantized blocks, a tensor type that only forks of
// llama.cpp know, and no padding at the end.
RawGguf SmallModel() {
  RawGguf model;
  model.entries = {
      RawEntry("general.architecture", "qwen3"),
      RawEntry("qwen3.block_count", 2),
      RawEntry("flag", 7, RawNumber<uint8_t>(1)),
      RawEntry("small", 1, RawNumber<int8_t>(-5)),
      RawEntry("real", 12, RawNumber(0.5)),
      RawEntry("tokens", 9,
               RawNumber<uint32_t>(8) + RawNumber<uint64_t>(2) + RawText("a") + RawText("bc")),
      RawEntry("scores", 9,
               RawNumber<uint32_t>(6) + RawNumber<uint64_t>(2) + RawNumber(1.F) + RawNumber(2.F))};
  model.infos = {RawInfo("a", {3, 2}, 0, 0), RawInfo("b", {32, 2}, 8, 32),
                 RawInfo("c", {7}, 42, 128), RawInfo("d", {5}, 1, 160)};
  for (int i = 0; i < 170; ++i) model.data += static_cast<char>(i);
  return model;
}

TEST(GgufFile, ReadsWhatTheFormatSays) {
  const fs::path scratch = TestScratch("gguf-read");
  for (const uint32_t version : {2U, 3U}) {
    RawGguf model = SmallModel();
    model.version = version;
    const GgufFile file = GgufFile::Open(model.Write(scratch / "m.gguf"));
    EXPECT_EQ(file.version, version);
    EXPECT_EQ(std::get<std::string_view>(file.entries.at("general.architecture")), "qwen3");
    EXPECT_EQ(std::get<uint64_t>(file.entries.at("qwen3.block_count")), 2U);
    EXPECT_EQ(std::get<int64_t>(file.entries.at("small")), -5);
    EXPECT_TRUE(std::get<bool>(file.entries.at("flag")));
    EXPECT_EQ(std::get<double>(file.entries.at("real")), 0.5);
    EXPECT_EQ(file.Strings("tokens"), (std::vector<std::string_view>{"a", "bc"}));
    EXPECT_EQ(file.Numbers("scores"), (std::vector<double>{1, 2}));
    ASSERT_EQ(file.tensors.size(), 4U);
    EXPECT_EQ(file.tensors[0].dims, (std::vector<uint64_t>{3, 2}));
    const std::vector<uint64_t> sizes = {24, 68, 32, 10};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(file.tensors[i].size, sizes[i]);
      EXPECT_EQ(static_cast<uint8_t>(file.Bytes(file.tensors[i])[0]), file.tensors[i].offset);
    }
    EXPECT_EQ(file.Find("e"), nullptr);
  }
}

TEST(GgufFile, GivesValuesOfTheTypeThatIsAskedFor) {
  RawGguf model = SmallModel();
  const auto array = [](uint32_t type, uint64_t count, const std::string& values) {
    return RawNumber(type) + RawNumber(count) + values;
  };
  model.entries.push_back(
      RawEntry("heads", 9, array(5, 2, RawNumber<int32_t>(4) + RawNumber<int32_t>(8))));
  model.entries.push_back(RawEntry("below", 9, array(5, 1, RawNumber<int32_t>(-1))));
  model.entries.push_back(RawEntry("flags", 9, array(7, 3, {1, 0, 1})));
  const GgufFile file = GgufFile::Open(model.Write(TestScratch("gguf-typed") / "m.gguf"));
  EXPECT_EQ(file.String("general.architecture"), "qwen3");
  EXPECT_EQ(file.Count("qwen3.block_count"), 2U);
  EXPECT_EQ(file.Number("qwen3.block_count"), 2.);
  EXPECT_EQ(file.Number("real"), .5);
  EXPECT_EQ(file.Bool("flag"), true);
  EXPECT_EQ(file.Counts("heads"), (std::vector<uint64_t>{4, 8}));
  EXPECT_EQ(file.Numbers("below"), (std::vector<double>{-1}));
  EXPECT_EQ(file.Bools("flags"), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(file.Count("absent"), std::nullopt);
  EXPECT_EQ(file.Strings("absent"), std::nullopt);
  const auto refused = [&](const auto& read, const std::string& words) {
    EXPECT_TRUE(Says(ErrorOf<InputError>([&] { read(); }), words));
  };
  refused([&] { file.Count("small"); }, "\"small\": expected an integer of at least 0, found -5");
  refused([&] { file.Count("tokens"); },
          "\"tokens\": expected an integer of at least 0, found an array");
  refused([&] { file.String("flag"); }, "\"flag\": expected a string, found a bool");
  refused([&] { file.Strings("real"); },
          "\"real\": expected an array of values, each a string, found a float");
  refused([&] { file.Counts("below"); },
          "\"below[0]\": expected an integer of at least 0, found -1");
  refused([&] { file.Strings("heads"); }, "\"heads[0]\": expected a string, found 4");
}

TEST(GgufFile, ReadsWhatIsAtTheLimits) {
  RawGguf model;
  model.alignment = 1 << 20;
  model.entries = {RawEntry("general.alignment", 1U << 20)};
  const std::string name(63, 'x');
  model.infos = {RawInfo(name, {1, 2, 1, 3}, 0, 0)};
  model.data = std::string(24, '\0');
  const GgufFile file = GgufFile::Open(model.Write(TestScratch("gguf-limits") / "m.gguf"));
  EXPECT_EQ(file.alignment, 1U << 20);
  ASSERT_NE(file.Find(name), nullptr);
  EXPECT_EQ(file.Find(name)->dims, (std::vector<uint64_t>{1, 2, 1, 3}));
}

TEST(GgufFile, RefusesEveryPrefix) {
  const fs::path scratch = TestScratch("gguf-prefix");
  const std::string bytes = SmallModel().Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(GgufFile::Open(WriteBytes(scratch / "m.gguf", bytes.substr(0, size))), InputError)
        << size;
  }
}

TEST(GgufFile, SurvivesEveryChangedByte) {
  const fs::path scratch = TestScratch("gguf-changed");
  const std::string bytes = SmallModel().Bytes();
  for (size_t at = 0; at < bytes.size() - 170; ++at) {
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      try {
        const GgufFile file = GgufFile::Open(WriteBytes(scratch / "m.gguf", changed));
        for (const GgufTensorInfo& tensor : file.tensors)
          EXPECT_EQ(file.Bytes(tensor).size(), tensor.size);
      } catch (const InputError& error) {
        EXPECT_TRUE(Says(error.what(), "m.gguf"));
      }
    }
  }
}

TEST(GgufFile, SaysWhatIsWrong) {
  const fs::path scratch = TestScratch("gguf-hostile");
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    EXPECT_TRUE(
        Says(ErrorOf<InputError>([&] { GgufFile::Open(WriteBytes(scratch / "m.gguf", bytes)); }),
             words));
  };
  const auto changed = [&](const std::function<void(RawGguf&)>& change, const std::string& words) {
    RawGguf model = SmallModel();
    change(model);
    refused(model.Bytes(), words);
  };
  constexpr uint64_t kHuge = ~uint64_t{0};
  const std::string bytes = SmallModel().Bytes();
  const auto header = [&](size_t at, const std::string& value) {
    return std::string(bytes).replace(at, value.size(), value);
  };
  refused(header(0, "GGML"), "wrong magic number");
  refused(header(4, RawNumber<uint32_t>(1)), "version is 1");
  refused(header(4, RawNumber<uint32_t>(3U << 24)), "big-endian");
  refused(header(8, RawNumber(kHuge)), "tensors and 7 entries");
  refused(header(16, RawNumber(kHuge)), "entries; expected");
  refused(header(24, RawNumber(kHuge)), "a key has 18446744073709551615 bytes");
  const auto entry = [&](const std::string& raw, const std::string& words) {
    changed([&](RawGguf& model) { model.entries.push_back(raw); }, words);
  };
  entry(RawEntry("flag", 0), "appears twice");
  entry(RawEntry("x", 13, ""), "a value has type 13");
  entry(RawEntry("x", 7, RawNumber<uint8_t>(2)), "a bool has the value 2");
  entry(RawEntry("x", 8, RawNumber(kHuge)), "a value has 18446744073709551615 bytes");
  entry(RawEntry("x", 9, RawNumber<uint32_t>(6) + RawNumber(kHuge / 4 + 2)), "the file ends");
  entry(RawEntry("x", 9, RawNumber<uint32_t>(8) + RawNumber(kHuge / 8 + 2)), "the file ends");
  entry(RawEntry("x", 9, RawNumber<uint32_t>(8) + RawNumber<uint64_t>(300)),
        "an array has 300 strings, but the file ends");
  entry(RawEntry("x", 9, RawNumber<uint32_t>(9) + RawNumber(kHuge)), "an array of type 9");
  for (const uint32_t alignment : {0U, 24U, 1U << 21, ~0U})
    entry(RawEntry("general.alignment", alignment), "general.alignment");
  entry(RawEntry("general.alignment", "32"), "general.alignment");
  const auto last = [&](const std::string& info, const std::string& words) {
    changed([&](RawGguf& model) { model.infos.back() = info; }, words);
  };
  last(RawInfo("a", {5}, 1, 160), "appears twice");
  last(RawInfo(std::string(64, 'x'), {5}, 1, 160), "a tensor's name has 64 bytes");
  last(RawInfo("d", {}, 1, 160), "has 0 dimensions");
  last(RawInfo("d", {1, 1, 1, 1, 5}, 1, 160), "has 5 dimensions");
  last(RawInfo("d", {5, 0}, 1, 160), "a dimension of 0");
  last(RawInfo("d", {uint64_t{1} << 40, uint64_t{1} << 40}, 1, 160), "more bytes than 64 bits");
  last(RawInfo("d", {33}, 8, 160), "the block size 32");
  last(RawInfo("d", {6}, 1, 160), "needs 12 bytes, but the file has only 10 left");
  changed([&](RawGguf& model) { model.infos[1] = RawInfo("b", {32, 2}, 8, 0); }, "expected 32");
  changed([&](RawGguf& model) { model.infos[1] = RawInfo("b", {32, 2}, 8, 64); }, "expected 32");
  last(RawInfo("d", {5}, 1, 96), "no known size");         // inside the previous tensor
  last(RawInfo("d", {5}, 1, 128), "no known size");        // leaves no bytes for its data
  last(RawInfo("d", {5}, 1, 161), "the file ends after");  // not aligned
  last(RawInfo("d", {5}, 1, kHuge - 31), "no known size");
  changed([&](RawGguf& model) { model.data += std::string(30, 'x'); }, "belong to no tensor");
}

}  // namespace
}  // namespace oscar
