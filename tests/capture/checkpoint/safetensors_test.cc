// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the safetensors format: what the reader accepts, what it returns, and the bytes that the
// writer produces.
#include "capture/checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "linalg/base/error.h"
#include "tests/capture/checkpoint/checkpoint_files.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

using namespace std::string_literals;

std::string AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

SafetensorsFile OpenBytes(std::string_view file) {
  const auto path = TestScratch("safetensors") / "x.safetensors";
  WriteText(path, file);
  return SafetensorsFile::Open(path);
}

TEST(DType, NamesAndSizesOfTheFormat) {
  EXPECT_EQ(DTypeFromName("BF16"), DType::kBF16);
  EXPECT_EQ(DTypeName(DType::kF8E4M3), "F8_E4M3");
  EXPECT_EQ(DTypeBytes(DType::kF64), 8);
  EXPECT_EQ(DTypeBytes(DType::kC64), 8);
  EXPECT_EQ(DTypeBits(DType::kF6E3M2), 6);
  for (const char* name : {"bf16", "BF16 ", "", "F5", "FLOAT32"}) {
    EXPECT_EQ(DTypeFromName(name), std::nullopt) << name;
  }
}

TEST(Safetensors, ReadsTensorsInAnyOrderAtAnyAlignment) {
  const SafetensorsFile file = OpenBytes(SafetensorsBytes(
      R"( {"__metadata__":{"format":"pt"},
           "b":{"dtype":"F32","shape":[1],"data_offsets":[3,7],"note":{"unknown":"field"}},
           "a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},
           "e":{"dtype":"I64","shape":[4,0],"data_offsets":[3,3]},
           "s":{"dtype":"BF16","shape":[],"data_offsets":[7,9]}}  )",
      "abcdefghi"));
  EXPECT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(AsText(file.tensor("a").data), "abc");
  EXPECT_EQ(AsText(file.tensor("b").data), "defg");
  EXPECT_EQ(AsText(file.tensor("s").data), "hi");
  EXPECT_EQ(file.tensor("s").shape, std::vector<int64_t>{});
  EXPECT_EQ(file.tensor("e").shape, (std::vector<int64_t>{4, 0}));
  EXPECT_TRUE(file.tensor("e").data.empty());
  EXPECT_EQ(file.tensor("b").dtype, DType::kF32);
  file.Release("b");
  EXPECT_EQ(AsText(file.tensor("b").data), "defg");
  EXPECT_THROW(file.tensor("c"), InputError);
}

TEST(SafetensorsWriter, LiteralBytes) {
  const auto path = TestScratch("safetensors") / "w.safetensors";
  SafetensorsWriter writer(
      path, {{"z", DType::kU8, {3}}, {"a\n", DType::kBF16, {2, 1}}, {"s", DType::kF32, {}}},
      {{"k", "v"}});
  writer.Write("z", AsBytes("abc"));
  writer.Write("a\n", AsBytes("defg"));
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.Write("s", AsBytes("hijk"));
  writer.Commit();
  const std::string header =
      R"({"__metadata__":{"k":"v"},"z":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
      R"("a\n":{"dtype":"BF16","shape":[2,1],"data_offsets":[3,7]},)"
      R"("s":{"dtype":"F32","shape":[],"data_offsets":[7,11]}}   )";
  EXPECT_EQ(ReadText(path), "\xC0\0\0\0\0\0\0\0"s + header + "abcdefghijk");
}

TEST(SafetensorsWriter, EmptyFile) {
  const auto path = TestScratch("safetensors") / "w.safetensors";
  SafetensorsWriter(path, {}).Commit();
  EXPECT_EQ(ReadText(path), "\x08\0\0\0\0\0\0\0{}      "s);
  EXPECT_TRUE(SafetensorsFile::Open(path).tensors().empty());
}

TEST(SafetensorsWriter, WrongUseIsABug) {
  const auto dir = TestScratch("safetensors");
  const std::vector<SafetensorsWriter::Declaration> two = {{"a", DType::kU8, {1}},
                                                           {"b", DType::kU8, {1}}};
  EXPECT_DEATH(SafetensorsWriter(dir / "w", two).Write("b", AsBytes("x")), "bug in oscar");
  EXPECT_DEATH(SafetensorsWriter(dir / "w", two).Write("a", AsBytes("xy")), "bug in oscar");
  EXPECT_DEATH(SafetensorsWriter(dir / "w", two).Commit(), "bug in oscar");
  EXPECT_DEATH(SafetensorsWriter(dir / "w", {two[0], two[0]}), "bug in oscar");
  EXPECT_DEATH(SafetensorsWriter(dir / "w", {{"a", DType::kU8, {-1}}}), "bug in oscar");
  EXPECT_DEATH(SafetensorsWriter(dir / "w", {{"__metadata__", DType::kU8, {1}}}), "bug in oscar");
}

TEST(SafetensorsWriter, RoundTripsAnyTensors) {
  const auto path = TestScratch("safetensors") / "rc.safetensors";
  EXPECT_TRUE(rc::check("what is written is read", [&] {
    std::vector<SafetensorsWriter::Declaration> tensors;
    std::vector<std::string> data;
    const auto count = *rc::gen::inRange<size_t>(0, 6);
    for (size_t i = 0; i < count; ++i) {
      // The name has any code points except NUL, and starts with its index to be unique.
      std::string name = std::to_string(i);
      for (const char c : *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)))
        name += c;
      if (*rc::gen::arbitrary<bool>()) name += "é\xF0\x9F\x98\x80";
      const auto dtype =
          static_cast<DType>(*rc::gen::inRange(0, static_cast<int>(DType::kF64) + 1));
      const auto shape = *rc::gen::container<std::vector<int64_t>>(*rc::gen::inRange<size_t>(0, 4),
                                                                   rc::gen::inRange<int64_t>(0, 5));
      int64_t bytes = DTypeBytes(dtype);
      for (const int64_t dim : shape) bytes *= dim;
      tensors.push_back({name, dtype, shape});
      data.push_back(
          *rc::gen::container<std::string>(static_cast<size_t>(bytes), rc::gen::arbitrary<char>()));
    }
    SafetensorsWriter writer(path, tensors);
    for (size_t i = 0; i < count; ++i) writer.Write(tensors[i].name, AsBytes(data[i]));
    writer.Commit();
    const SafetensorsFile file = SafetensorsFile::Open(path);
    RC_ASSERT(file.tensors().size() == count);
    for (size_t i = 0; i < count; ++i) {
      const TensorView view = file.tensor(tensors[i].name);
      RC_ASSERT(view.dtype == tensors[i].dtype);
      RC_ASSERT(view.shape == tensors[i].shape);
      RC_ASSERT(AsText(view.data) == data[i]);
    }
    RC_ASSERT((std::filesystem::file_size(path) -
               [&] {
                 size_t total = 0;
                 for (const auto& bytes : data) total += bytes.size();
                 return total;
               }()) %
                  8 ==
              0u);
  }));
}

}  // namespace
}  // namespace oscar
