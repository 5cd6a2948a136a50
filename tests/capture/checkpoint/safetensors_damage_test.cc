// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests hostile and damaged safetensors files. Every case gives the reason that the message must
// contain, so that no file is refused for a different reason.
#include <gtest/gtest.h>

#include <set>

#include "capture/checkpoint/safetensors.h"
#include "capture/checkpoint/safetensors_header.h"
#include "linalg/base/error.h"
#include "tests/capture/checkpoint/checkpoint_files.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

// Returns the message with which a file is refused, or "" if it is accepted.
std::string Refusal(std::string_view file) {
  return ErrorOf<InputError>(
      [&] { ParseSafetensorsHeader(std::as_bytes(std::span(file)), "file"); });
}

std::string Entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return "{\"dtype\":" + std::string(dtype) + ",\"shape\":" + std::string(shape) +
         ",\"data_offsets\":" + std::string(offsets) + "}";
}

TEST(HostileSafetensors, RefusedForTheRightReason) {
  struct Case {
    std::string header;
    size_t data_bytes;
    const char* reason;
  };
  const std::string a16 = Entry("\"F32\"", "[2,2]", "[0,16]");
  const std::vector<Case> cases = {
      {"[]", 0, "must be an object"},
      {"", 0, "JSON refused at byte"},
      {"{\"a\":" + a16 + ",\"a\":" + a16 + "}", 16, "given twice"},
      {"{\"a\":" + a16 + ",\"\\u0061\":" + a16 + "}", 16, "given twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"shape\":[4],\"data_offsets\":[0,16]}}", 16,
       "given twice"},
      {"{\"a\":3}", 0, "must be an object"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2]}}", 16, "\"data_offsets\" is missing"},
      {"{\"a\":" + Entry("\"F32\"", "null", "[0,16]") + "}", 16, "\"shape\" must be array"},
      {"{\"a\":" + Entry("\"f32\"", "[2,2]", "[0,16]") + "}", 16, "not one of the safetensors"},
      {"{\"a\":" + Entry("\"F5\"", "[4]", "[0,2]") + "}", 2, "not one of the safetensors format"},
      {"{\"a\":" + Entry("\"F4\"", "[3]", "[0,2]") + "}", 2, "ends within a byte"},
      {"{\"a\":" + Entry("\"F6_E2M3\"", "[4]", "[0,4]") + "}", 4, "needs 3 bytes"},
      {"{\"a\":" + Entry("\"F4\"", "[4611686018427387904,2]", "[0,2]") + "}", 2, "overflows"},
      {"{\"a\":" + Entry("7", "[2,2]", "[0,16]") + "}", 16, "\"dtype\" must be string"},
      {"{\"a\":" + Entry("\"BF16\"", "[2,2]", "[0,16]") + "}", 16, "needs 8 bytes"},
      {"{\"a\":" + Entry("\"F32\"", "[2.0,2]", "[0,16]") + "}", 16, "expected unsigned integers"},
      {"{\"a\":" + Entry("\"F32\"", "[-2,-2]", "[0,16]") + "}", 16, "expected unsigned integers"},
      {"{\"a\":" + Entry("\"F32\"", "[-0]", "[0,0]") + "}", 0, "expected unsigned integers"},
      {"{\"a\":" + Entry("\"F32\"", "[[2,2]]", "[0,16]") + "}", 16, "expected unsigned integers"},
      {"{\"a\":" + Entry("\"U8\"", "[18446744073709551616]", "[0,0]") + "}", 0,
       "expected unsigned integers"},
      {"{\"a\":" + Entry("\"U8\"", "[18446744073709551615]", "[0,0]") + "}", 0,
       "exceeds a signed 64-bit"},
      {"{\"a\":" + Entry("\"F32\"", "[4294967296,4294967296]", "[0,0]") + "}", 0, "overflows"},
      {"{\"a\":" + Entry("\"F32\"", "[4611686018427387904]", "[0,0]") + "}", 0, "overflows"},
      {"{\"a\":" + Entry("\"F32\"", "[4294967296,4294967296,0]", "[0,0]") + "}", 0, "overflows"},
      {"{\"a\":" + Entry("\"F32\"", "[0]", "[0,16]") + "}", 16, "needs 0 bytes"},
      {"{\"a\":" + Entry("\"F32\"", "[2,2]", "[16,0]") + "}", 16, "after its end"},
      {"{\"a\":" + Entry("\"F32\"", "[2,2]", "[18446744073709551600,0]") + "}", 16,
       "after its end"},
      {"{\"a\":" + Entry("\"F32\"", "[2,2]", "[0,16,16]") + "}", 16, "has 3 numbers"},
      {"{\"a\":" + Entry("\"F32\"", "[2,2]", "[\"0\",\"16\"]") + "}", 16, "unsigned integers"},
      {"{\"a\":" + Entry("\"F32\"", "[2,2]", "[0,16]") + "}", 12, "the file holds 12"},
      {"{\"a\":" + Entry("\"F32\"", "[2,2]", "[0,16]") + "}", 17, "1 bytes after the last tensor"},
      {"{\"a\":" + Entry("\"F32\"", "[2,2]", "[4,20]") + "}", 20, "a gap"},
      {"{\"a\":" + a16 + ",\"b\":" + Entry("\"F32\"", "[2,2]", "[8,24]") + "}", 24, "an overlap"},
      {"{\"a\":" + a16 + ",\"b\":" + a16 + "}", 16, "an overlap"},
      {"{\"a\":" + a16 + ",\"z\":" + Entry("\"F32\"", "[0]", "[8,8]") + "}", 16, "an overlap"},
      {"{\"a\\u0000b\":" + a16 + "}", 16, "NUL"},
      {"{\"__metadata__\":[]}", 0, "\"__metadata__\" must be an object"},
      {"{\"__metadata__\":{\"a\":1}}", 0, "must be a string"},
      {"{\"__metadata__\":" + a16 + "}", 0, "must be a string"},
      {"{}" + std::string(3, '\0'), 0, "a NUL byte"},
      {"\xEF\xBB\xBF{}", 0, "byte order mark"},
      {"{\"a\":" + std::string(100, '['), 0, "nested deeper"},
  };
  for (const Case& test : cases) {
    const std::string refusal =
        Refusal(SafetensorsBytes(test.header, std::string(test.data_bytes, 'x')));
    EXPECT_TRUE(Says(refusal, test.reason)) << test.header;
  }
  EXPECT_EQ(Refusal(SafetensorsBytes("{\"a\":" + a16 + "}", std::string(16, 'x'))), "");
}

TEST(HostileSafetensors, LengthFieldIsCheckedBeforeItIsUsed) {
  EXPECT_TRUE(Says(Refusal(""), "0 bytes"));
  EXPECT_TRUE(Says(Refusal("1234567"), "7 bytes"));
  const auto with_length = [](uint64_t length) {
    std::string file = SafetensorsBytes("{}", "");
    for (int i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i) & 0xFF);
    return file;
  };
  EXPECT_EQ(Refusal(with_length(2)), "");
  EXPECT_TRUE(Says(Refusal(with_length(3)), "truncated"));
  EXPECT_TRUE(Says(Refusal(with_length(32'000'000)), "truncated"));
  for (const uint64_t length : {uint64_t{32'000'001}, uint64_t{1} << 31, uint64_t{1} << 63,
                                ~uint64_t{0}, ~uint64_t{0} - 7}) {
    EXPECT_TRUE(Says(Refusal(with_length(length)), "at most 32000000")) << length;
  }
}

TEST(HostileSafetensors, TooManyEntriesDimensionsOrValues) {
  std::string entries = "{";
  for (int i = 0; i < 200'001; ++i) {
    entries += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  }
  EXPECT_TRUE(Says(Refusal(SafetensorsBytes(entries + "}", "")), "at most 200000"));
  std::string ones = "[1";
  for (int i = 1; i < 64; ++i) ones += ",1";
  EXPECT_EQ(Refusal(SafetensorsBytes("{\"a\":" + Entry("\"U8\"", ones + "]", "[0,1]") + "}", "x")),
            "");
  EXPECT_TRUE(
      Says(Refusal(SafetensorsBytes("{\"a\":" + Entry("\"U8\"", ones + ",1]", "[0,1]") + "}", "x")),
           "65 dimensions"));
  std::string zeros = "{\"a\":[0";
  for (int i = 0; i < 4'000'000; ++i) zeros += ",0";
  EXPECT_TRUE(Says(Refusal(SafetensorsBytes(zeros + "]}", "")), "more than 4000000 values"));
}

// Returns a small file with two tensors, metadata and padding.
std::string SmallFile() {
  return SafetensorsBytes(
      "{\"__metadata__\":{\"k\":\"v\"},\"a\":" + Entry("\"F32\"", "[2,2]", "[0,16]") +
          ",\"b\":" + Entry("\"BF16\"", "[3,1]", "[16,22]") + "}  ",
      "0123456789abcdefGHIJKL");
}

TEST(DamagedSafetensors, NoPrefixIsAccepted) {
  const std::string file = SmallFile();
  ASSERT_EQ(Refusal(file), "");
  for (size_t length = 0; length < file.size(); ++length) {
    ASSERT_NE(Refusal(file.substr(0, length)), "") << length;
  }
  EXPECT_NE(Refusal(file + '\0'), "");
}

// A bit flip may yield another valid header (another name, "I32" instead of "F32", other blanks). A
// valid header must still cover every byte of the data exactly once and stay within it.
TEST(DamagedSafetensors, EveryBitFlipIsRefusedOrStillConsistent) {
  const std::string file = SmallFile();
  const size_t data_begin = file.size() - 22;
  size_t accepted = 0;
  for (size_t bit = 0; bit < data_begin * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    SafetensorsHeader header;
    try {
      header = ParseSafetensorsHeader(std::as_bytes(std::span<const char>(flipped)), "file");
    } catch (const InputError&) {
      continue;
    }
    ++accepted;
    ASSERT_GE(bit, 64u) << "the length field has no second sound value";
    std::set<uint64_t> covered;
    for (const auto& [name, info] : header.tensors) {
      int64_t bytes = DTypeBytes(info.dtype);
      for (const int64_t dim : info.shape) bytes *= dim;
      ASSERT_EQ(static_cast<uint64_t>(bytes), info.size);
      for (uint64_t i = 0; i < info.size; ++i) {
        ASSERT_GE(info.offset + i, data_begin);
        ASSERT_TRUE(covered.insert(info.offset + i).second) << "bit " << bit;
      }
    }
    ASSERT_EQ(covered.size(), 22u) << "bit " << bit;
  }
  // Only flips in names, metadata text or dtypes can be accepted, not in digits or brackets.
  EXPECT_GT(accepted, 10u);
  EXPECT_LT(accepted, data_begin * 8 / 10);
}

}  // namespace
}  // namespace oscar
