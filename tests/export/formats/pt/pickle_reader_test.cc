// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that the pickle reader builds only data, in bounded time and memory.
#include "export/formats/pt/pickle_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "linalg/base/error.h"
#include "tests/export/formats/pt/pt_builder.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

PickleResult Read(const std::string& pickle) {
  return ReadPickle(std::as_bytes(std::span(pickle)), "test");
}

std::string Refusal(const std::string& pickle) {
  return ErrorOf<InputError>([&] { Read(pickle); });
}

TEST(PickleReader, ReadsWhatPythonDumpsOfOneDict) {
  // The pickle of {"a": [1, -2, 300, 70000, 1 << 40], 7: (None, True, 1.5)} in protocol 2.
  const std::string pickle(
      "\x80\x02\x7d\x71\x00\x28\x58\x01\x00\x00\x00\x61\x71\x01\x5d\x71\x02\x28\x4b\x01\x4a\xfe"
      "\xff\xff\xff\x4d\x2c\x01\x4a\x70\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x65\x4b\x07"
      "\x4e\x88\x47\x3f\xf8\x00\x00\x00\x00\x00\x00\x87\x71\x03\x75\x2e",
      60);
  const PickleResult result = Read(pickle);
  EXPECT_EQ(PtToJson(*result.tree.root),
            Json::parse(R"({"a": [1, -2, 300, 70000, 1099511627776], "7": [null, true, 1.5]})"));
}

TEST(PickleReader, KeepsOrderAndKeyTypes) {
  const auto result = Read(Pickle("}(K\x02N" + PickleText("2") + "NK\x01Nu"));
  const auto* dict = result.tree.root->If<PtDict>();
  ASSERT_NE(dict, nullptr);
  ASSERT_EQ(dict->entries.size(), 3u);
  EXPECT_EQ(dict->entries[0].first, PtKey(int64_t{2}));
  EXPECT_EQ(dict->entries[1].first, PtKey("2"));
  EXPECT_EQ(dict->entries[2].first, PtKey(int64_t{1}));
  EXPECT_NE(dict->Find("2"), nullptr);
  EXPECT_EQ(dict->Find("1"), nullptr);
}

TEST(PickleReader, LongsCoverInt64AndNoMore) {
  const auto value = [](const std::string& bytes) {
    const auto result =
        Read(Pickle("\x8a" + std::string(1, static_cast<char>(bytes.size())) + bytes));
    return *result.tree.root->If<int64_t>();
  };
  EXPECT_EQ(value(""), 0);
  EXPECT_EQ(value("\xff"), -1);
  EXPECT_EQ(value(std::string("\xff\x00", 2)), 255);
  EXPECT_EQ(value(std::string("\x00\x00\x00\x00\x00\x00\x00\x80", 8)), INT64_MIN);
  EXPECT_TRUE(Says(Refusal(Pickle(std::string("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01", 11))),
                   "64 bits"));
}

TEST(PickleReader, RefusesEveryOpcodeOutsideTheList) {
  const std::string allowed = ".(N\x88\x89JKM\x8aGX]ae)t\x85\x86\x87}sucRQqrhj";
  int refused = 0;
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (allowed.find(static_cast<char>(opcode)) != std::string::npos) continue;
    const std::string why = Refusal("\x80\x02" + std::string(1, static_cast<char>(opcode)) + "N.");
    EXPECT_TRUE(Says(why, "opcode")) << opcode;
    ++refused;
  }
  EXPECT_EQ(refused, 256 - static_cast<int>(allowed.size()));
}

TEST(PickleReader, RefusesGlobalsThatAreNotData) {
  for (const char* global :
       {"os\nsystem\n", "builtins\neval\n", "torch\nload\n", "torch\nFooStorage\n",
        "torch.jit._pickle\nrestore_type_tag\n", "collections\nCounter\n"}) {
    EXPECT_TRUE(Says(Refusal(Pickle(std::string("c") + global)), "not data"));
  }
}

TEST(PickleReader, DepthIsLimitedToSixteen) {
  const auto nested = [](int levels) {
    std::string body;
    for (int i = 0; i < levels; ++i) body += "]";
    for (int i = 1; i < levels; ++i) body += "a";
    return Pickle(body);
  };
  EXPECT_EQ(Refusal(nested(16)), "");
  EXPECT_TRUE(Says(Refusal(nested(17)), "nested"));
  EXPECT_TRUE(Says(Refusal(nested(60000)), "nested"));
}

TEST(PickleReader, SharedValuesMayNotExpandWithoutEnd) {
  // Each of sixteen lists names the one before it a hundred times: 100^15 elements if expanded.
  std::string body = "]q" + std::string(1, '\0');
  for (char level = 1; level < 16; ++level) {
    body += "](";
    for (int i = 0; i < 100; ++i) body += "h" + std::string(1, static_cast<char>(level - 1));
    body += "eq" + std::string(1, level);
  }
  EXPECT_TRUE(Says(Refusal(Pickle(body)), "expand"));
}

// Returns three nested lists that repeat their element: the inner two 100 times, the outer one
// `times` times. The innermost element is `value`.
std::string Shared(const std::string& value, int times) {
  std::string body = value;
  char slot = 0;
  for (const int count : {100, 100, times}) {
    std::string list = "](" + body + "q" + slot;
    for (int i = 1; i < count; ++i) list += std::string("h") + slot;
    body = list + "e";
    ++slot;
  }
  return Pickle(body);
}

TEST(PickleReader, SharedTextsAndTensorsCountByWhatTheyBecome) {
  EXPECT_EQ(Refusal(Shared("N", 100)), "");
  for (const std::string& value :
       {PickleText(std::string(150, '\1')), PickleTensor("0", 1, 0, {0, 1}, {1, 1})}) {
    EXPECT_EQ(Refusal(Shared(value, 10)), "");
    EXPECT_TRUE(Says(Refusal(Shared(value, 11)), "expand"));
  }
}

TEST(PickleReader, ContainersMayNotChangeOnceUsed) {
  const std::string zero(1, '\0');
  EXPECT_TRUE(Says(Refusal(Pickle("]q" + zero + "h" + zero + "a")), "new container"));
  EXPECT_TRUE(
      Says(Refusal(Pickle("]q" + zero + "]h" + zero + "ah" + zero + "Na")), "new container"));
}

TEST(PickleReader, RefusesKeysGivenTwiceAndKeysThatAreNoKeys) {
  EXPECT_TRUE(Says(Refusal(Pickle("}(K\x01NK\x01Nu")), "twice"));
  EXPECT_TRUE(Says(Refusal(Pickle("}\x88Ns")), "bool"));
  EXPECT_TRUE(Says(Refusal(Pickle("}]Ns")), "list"));
}

TEST(PickleReader, MemoSlotsAreLimited) {
  EXPECT_EQ(Refusal(Pickle(std::string("Nr\xff\xff\x00\x00", 6))), "");
  EXPECT_TRUE(Says(Refusal(Pickle(std::string("Nr\x00\x00\x01\x00", 6))), "memo"));
}

TEST(PickleReader, TensorsAreReadInForm) {
  const auto result = Read(Pickle(PickleTensor("3", 24, 2, {2, 3}, {10, 1})));
  const auto* tensor = result.tree.root->If<PtTensor>();
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(*tensor, (PtTensor{"3", DType::kF32, 24, 2, {2, 3}, {10, 1}}));
  EXPECT_EQ(result.globals,
            (std::vector<std::string>{"torch._utils._rebuild_tensor_v2", "torch.FloatStorage",
                                      "collections.OrderedDict"}));
  for (const char* key : {"../0", "/etc/passwd", "-1", "", "0x1", "1234567890123456789"}) {
    EXPECT_TRUE(Says(Refusal(Pickle(PickleTensor(key, 1, 0, {1}, {1}))), "storage id"));
  }
}

}  // namespace
}  // namespace oscar
