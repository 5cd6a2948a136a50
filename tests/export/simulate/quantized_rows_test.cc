// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a file of quantized keys and values is read by layer, sequence, head and position, in
// every float type, and that a file for another dump is refused with a precise error.
#include "export/simulate/quantized_rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "capture/dump/dump_reader.h"
#include "capture/dump/hdf5_file.h"
#include "linalg/base/error.h"
#include "tests/capture/dump/sample_dump.h"
#include "tests/export/simulate/per_token_rows.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// A file with quantized rows for SampleDump: two layers, 8 tokens in sequences of 4, 1 and 3.
struct QuantizedFile {
  std::vector<int32_t> ids = {5, 6, 7, 8, 9, 1, 2, 3};
  std::vector<int> layers = {3, 10};
  int64_t heads = 2;
  double bits = 2.5;
  int64_t bad_value = -1;  // index of an infinite value in the keys of layer 10; -1: none
  std::string bf16 = "bf16";

  static float Value(int layer, bool keys, int64_t i) {  // exact in bfloat16 and float16
    return static_cast<float>(layer + (keys ? 0.5 : 0.25) + i);
  }

  template <typename T, typename Convert>
  void WriteSide(Hdf5Writer& file, int layer, bool keys, Convert convert) const {
    const int64_t dim = keys ? 3 : 2, tokens = std::ssize(ids);
    std::vector<T> values;
    for (int64_t i = 0; i < tokens * heads * dim; ++i) {
      const bool bad = keys && layer == 10 && i == bad_value;
      values.push_back(
          convert(bad ? std::numeric_limits<float>::infinity() : Value(layer, keys, i)));
    }
    const std::string name = "/layer/" + std::to_string(layer) + (keys ? "/k" : "/v");
    file.Write<T>(name, {tokens, heads, dim}, values);
    if (Hdf5TypeOf<T>() == Hdf5Type::kUInt16 && !bf16.empty())
      file.SetAttribute(name, "dtype", bf16);
  }

  template <typename T, typename Convert>
  fs::path Write(const std::string& name, Convert convert) const {
    const fs::path path = TestScratch("quantized_rows_" + name) / name;
    Hdf5Writer file(path);
    if (bits != 0) file.SetAttribute("/", "bits_per_element", bits);
    if (!ids.empty()) file.Write<int32_t>("/input_ids", {std::ssize(ids)}, ids);
    for (const int layer : layers)
      for (const bool keys : {true, false}) WriteSide<T>(file, layer, keys, convert);
    file.Commit();
    return path;
  }
  fs::path Write(const std::string& name) const {
    return Write<float>(name, [](float x) { return x; });
  }
};

std::shared_ptr<const DumpReader> Sample() {
  static const auto dump = [] {
    const fs::path path = TestScratch("quantized_rows_dump") / "d.h5";
    SampleDump{}.Write(path);
    return std::make_shared<const DumpReader>(path);
  }();
  return dump;
}

uint16_t Bf16Bits(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }

TEST(QuantizedRows, AreWhatTheFileHoldsInEveryFloatType) {
  const QuantizedFile given;
  const fs::path files[] = {
      given.Write("f32.h5"), given.Write<double>("f64.h5", [](float x) { return double{x}; }),
      given.Write<Float16>("f16.h5", [](float x) { return Float16{c10::Half(x).x}; }),
      given.Write<uint16_t>("bf16.h5", Bf16Bits)};
  RowContext context(kSmallRows);
  const int64_t lengths[] = {4, 1, 3}, first[] = {0, 4, 5};
  for (const fs::path& file : files) {
    const auto method = QuantizedMethod("mine", file, *Sample());
    EXPECT_EQ(method->name, "mine");
    EXPECT_NE(method->description.find(file.filename().string()), method->description.npos);
    for (size_t layer = 0; layer < 2; ++layer) {
      const LayerCache cache = method->make(context.context(), layer, {});
      EXPECT_FALSE(cache.k_exact.any());
      for (int64_t s = 0; s < 3; ++s) {
        for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
          const at::Tensor exact = at::zeros({lengths[s], 2, 1}, type);
          const CacheSides stored = cache.store({exact, exact, s}).quantized;
          for (const auto& [rows, keys] : {std::pair(stored.k, true), std::pair(stored.v, false)}) {
            EXPECT_EQ(rows.scalar_type(), type);
            ASSERT_EQ(rows.sizes(), (at::IntArrayRef{lengths[s], 2, keys ? 3 : 2}));
            const at::Tensor flat = rows.flatten();
            const int64_t begin = first[s] * 2 * rows.size(2);
            for (int64_t i = 0; i < flat.numel(); ++i) {
              const float value = QuantizedFile::Value(layer == 0 ? 3 : 10, keys, begin + i);
              ASSERT_EQ(flat[i].item<float>(), value) << file << " " << layer << " " << s;
            }
          }
        }
      }
    }
  }
}

TEST(QuantizedRows, CostWhatTheFileSaysAndWindows) {
  RowContext context(kSmallRows, {.windows = {64, 256}});
  const auto method = QuantizedMethod("mine", QuantizedFile{}.Write("bits.h5"), *Sample());
  const CacheCost plain = method->cost(context.context(), {}, 3200);
  EXPECT_DOUBLE_EQ(plain.paper, 2.5);
  EXPECT_DOUBLE_EQ(plain.actual, 2.5);
  const CacheCost windows = method->cost(context.context(), {.windows = true}, 3200);
  EXPECT_DOUBLE_EQ(windows.paper, 0.9 * 2.5 + 0.1 * 16);
}

TEST(QuantizedRows, AnotherFileIsRefused) {
  const auto refuses = [&](const fs::path& path, const std::string& why) {
    const std::string error =
        ErrorOf<InputError>([&] { QuantizedMethod("mine", path, *Sample()); });
    EXPECT_EQ(error, path.string() + ": " + why);
  };
  refuses(QuantizedFile{.heads = 1}.Write("heads.h5"),
          "/layer/3/k: expected [8, 2, 3], as in the dump, found [8, 1, 3]");
  refuses(QuantizedFile{.ids = {5, 6, 7, 8, 9, 1, 2}}.Write("fewer.h5"),
          "/input_ids: expected int32 [8], found int32 [7]");
  refuses(QuantizedFile{.ids = {5, 6, 7, 8, 9, 1, 4, 3}}.Write("other.h5"),
          "/input_ids: token 6 is 4, but 2 in " + Sample()->name() +
              "; quantize the rows of that dump");
  refuses(QuantizedFile{.layers = {3}}.Write("layer.h5"), "/layer/10/k: is not in the file");
  refuses(QuantizedFile{.bits = 0}.Write("no_bits.h5"), "/: has no attribute \"bits_per_element\"");
  refuses(QuantizedFile{.bits = -1}.Write("bits.h5"),
          "/: bits_per_element is -1, expected a number above 0 and up to 64");
  const std::string types =
      " values, expected float64, float32, float16, or bfloat16 as uint16 with the attribute "
      "dtype = \"bf16\"";
  refuses(QuantizedFile{.bf16 = ""}.Write<uint16_t>("codes.h5", Bf16Bits),
          "/layer/3/k: uint16" + types);
  refuses(
      QuantizedFile{}.Write<uint8_t>("bytes.h5", [](float x) { return static_cast<uint8_t>(x); }),
      "/layer/3/k: uint8" + types);
}

TEST(QuantizedRows, AValueThatIsNoNumberIsRefusedWhenItIsRead) {
  const fs::path path = QuantizedFile{.bad_value = 4 * 6 + 3 + 2}.Write("bad.h5");
  const auto method = QuantizedMethod("mine", path, *Sample());
  RowContext context(kSmallRows);
  const LayerCache cache = method->make(context.context(), 1, {});
  cache.store({at::zeros({4, 2, 3}), at::zeros({4, 2, 2}), 0});
  const std::string error = ErrorOf<InputError>([&] {
    cache.store({at::zeros({1, 2, 3}), at::zeros({1, 2, 2}), 1});
  });
  EXPECT_EQ(error,
            path.string() + ": /layer/10/k: token 4, head 1, dimension 2 is NaN or infinite");
}

// A dump without token ids, like upstream's.
class WithoutIds : public AttentionDump {
 public:
  const DumpOrigin& origin() const override { return Sample()->origin(); }
  const std::string& name() const override { return Sample()->name(); }
  const std::vector<DumpLayer>& layers() const override { return Sample()->layers(); }
  const std::vector<int64_t>& sequence_lengths() const override {
    return Sample()->sequence_lengths();
  }
  bool has(DumpTensor) const override { return true; }
  void ReadRows(size_t, DumpTensor, int64_t, std::span<std::byte>) const override {}
};

TEST(QuantizedRows, ADumpWithoutTokensIsRefused) {
  const fs::path path = QuantizedFile{}.Write("any.h5");
  const std::string error =
      ErrorOf<InputError>([&] { QuantizedMethod("mine", path, WithoutIds()); });
  EXPECT_EQ(error, Sample()->name() + ": stores no token ids, so it cannot be checked whether " +
                       path.string() +
                       " belongs to the same text; capture the dump with oscar-capture as HDF5");
}

}  // namespace
}  // namespace oscar
