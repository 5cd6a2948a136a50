// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares codes in 32-bit words (GPTQ, AWQ, compressed-tensors) with a scalar implementation that
// packs known values, for bits, zero points, groups and orders that no model of the pack "formats"
// has. Sizes above kDequantizeValuesCpu take several steps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "tests/capture/model/scalar_weights.h"

namespace oscar {
namespace {

struct Group {
  int64_t size, count;
  Ints of;  // group of each column
};

Group MakeGroups(int64_t columns, int64_t group_size, bool ordered) {
  Group group{group_size == -1 ? columns : group_size, 0, {}};
  group.count = (columns + group.size - 1) / group.size;
  for (const int k : ordered ? RandomOrder(columns) : Ints()) group.of.push_back(k);
  if (!ordered) {
    group.of.resize(static_cast<size_t>(columns));
    std::iota(group.of.begin(), group.of.end(), 0);
  }
  for (int& k : group.of) k /= static_cast<int>(group.size);
  return group;
}

// ---- GPTQ

// How a file stores zero points: unchanged (v2), one subtracted within whole words, or one
// subtracted from each code modulo its range. In a symmetric file all codes are the middle one.
enum class Zeros { kV2, kWordsMinusOnes, kCodesMinusOne, kSymmetric };

struct GptqCase {
  int bits;
  int64_t rows, columns, group_size;
  bool ordered;
  Zeros zeros;
  std::string version = "6.0.3";  // GPTQModel version of the writer
  int file_bits = 0;              // bits of the file; 0: same as `bits`
};

// Returns the ones that GPTQModel's convert_gptq_v2_to_v1_format_module subtracts from a word.
uint32_t GptqModelOnes(int bits, size_t word) {
  if (bits == 2) return 0b01010101010101010101010101010101;
  if (bits == 4) return 0b00010001000100010001000100010001;
  if (bits == 8) return 0b00000001000000010000000100000001;
  return std::array{0b00100100100100100100100100100100U, 0b10010010010010010010010010010010U,
                    0b01001001001001001001001001001001U}[word % 3];
}

void ExpectGptq(const GptqCase& c) {
  const bool symmetric = c.zeros == Zeros::kSymmetric;
  const int largest = (1 << c.bits) - 1, middle = 1 << (c.bits - 1);
  const Group group = MakeGroups(c.columns, c.group_size, c.ordered);
  const Ints codes = RandomInts(c.rows * c.columns, 0, largest);  // [rows, columns]
  const Ints zeros = symmetric ? Ints(static_cast<size_t>(group.count * c.rows), middle)
                               : RandomInts(group.count * c.rows, 0, largest);  // [groups, rows]
  StoredWeights stored;
  stored.quantization = {{"quant_method", "gptq"},
                         {"bits", c.file_bits == 0 ? c.bits : c.file_bits},
                         {"group_size", c.group_size},
                         {"desc_act", c.ordered},
                         {"sym", symmetric}};
  if (c.file_bits != 0) stored.quantization["dynamic"] = {{"+:m", {{"bits", c.bits}}}};
  if (c.zeros == Zeros::kV2) stored.quantization["checkpoint_format"] = "gptq_v2";
  if (c.zeros != Zeros::kSymmetric || c.file_bits != 0)
    stored.quantization["meta"] = {{"quantizer", {"optimum:1.24.0", "gptqmodel:" + c.version}}};
  // For each column n, words pack codes along K. They are stored as [words, N].
  const auto rows = static_cast<size_t>(c.rows), columns = static_cast<size_t>(c.columns);
  const size_t words = columns * static_cast<size_t>(c.bits) / 32;
  std::vector<uint32_t> qweight(words * rows);
  for (size_t n = 0; n < rows; ++n) {
    const auto packed = PackWords({codes.begin() + static_cast<ptrdiff_t>(n * columns),
                                   codes.begin() + static_cast<ptrdiff_t>((n + 1) * columns)},
                                  c.bits);
    for (size_t w = 0; w < words; ++w) qweight[w * rows + n] = packed[w];
  }
  std::vector<uint32_t> qzeros;
  for (int64_t g = 0; g < group.count; ++g) {
    Ints row(zeros.begin() + g * c.rows, zeros.begin() + (g + 1) * c.rows);
    const bool off_words = c.zeros == Zeros::kWordsMinusOnes || c.file_bits != 0;
    if (!off_words && c.zeros != Zeros::kV2)
      for (int& zero : row) zero = (zero - 1) & largest;
    std::vector<uint32_t> packed = PackWords(row, c.bits);
    for (size_t w = 0; w < packed.size() && off_words; ++w)
      packed[w] -= GptqModelOnes(c.file_bits == 0 ? c.bits : c.file_bits, w);
    qzeros.insert(qzeros.end(), packed.begin(), packed.end());
  }
  stored.Add("m.qweight", DType::kI32, {static_cast<int64_t>(words), c.rows}, qweight);
  stored.Add("m.qzeros", DType::kI32, {group.count, c.rows * c.bits / 32}, qzeros);
  const Floats scales = AddScales(stored, "m.scales", {group.count, c.rows}, DType::kF16);
  if (c.ordered) stored.Add("m.g_idx", DType::kI32, {c.columns}, group.of);
  const Floats expected = Dense(c.rows, c.columns, [&](size_t n, size_t k) {
    const size_t at = static_cast<size_t>(group.of[k]) * rows + n;
    return scales[at] * static_cast<float>(codes[n * columns + k] - zeros[at]);
  });
  ExpectLoads(stored, {c.rows, c.columns}, expected,
              fmt::format("gptq {} bits, groups of {}, {}, zeros {}", c.bits, c.group_size,
                          c.ordered ? "ordered" : "in order", static_cast<int>(c.zeros)));
}

TEST(Dequantize, GptqOfAllBitsOrdersAndConventions) {
  for (const int bits : {2, 3, 4, 8}) {
    for (const bool ordered : {false, true}) {
      for (const Zeros zeros : {Zeros::kV2, Zeros::kWordsMinusOnes, Zeros::kSymmetric}) {
        ExpectGptq({bits, 96, 160, 32, ordered, zeros});
        ExpectGptq({bits, 64, 96, -1, ordered, zeros});
      }
    }
    ExpectGptq({bits, 32, 160, 48, true, Zeros::kV2});    // the last group is smaller
    ExpectGptq({bits, 608, 512, 128, true, Zeros::kV2});  // several steps
  }
}

// GPTQModel #2763: version 7.0.0 and later subtract one from each 3-bit code, modulo 8. Earlier
// versions subtract one of three constants from each word, with two of the three exchanged.
TEST(Dequantize, ThreeBitZerosByTheVersionThatWroteThem) {
  for (const char* version : {"1.4.0", "5.8.0", "6.0.3"})
    ExpectGptq({3, 96, 160, 32, false, Zeros::kWordsMinusOnes, version});
  for (const char* version : {"7.0.0", "7.1.0-dev", "7.3.1", "8.0"})
    ExpectGptq({3, 96, 160, 32, false, Zeros::kCodesMinusOne, version});
}

// GPTQModel #2971: before 7.3.2, a module whose bits differ from the file's got the ones for the
// file's bits.
TEST(Dequantize, MixedBitsByTheVersionThatWroteThem) {
  for (const Zeros zeros : {Zeros::kWordsMinusOnes, Zeros::kSymmetric}) {
    for (const int bits : {2, 3, 4, 8}) {
      for (const int file_bits : {2, 3, 4, 8}) {
        if (bits != file_bits) ExpectGptq({bits, 96, 160, 32, false, zeros, "6.0.0", file_bits});
      }
    }
    ExpectGptq({8, 96, 160, 32, false, zeros, "7.3.0", 4});
  }
}

// ---- AWQ

TEST(Dequantize, AwqGemm) {
  struct Case {
    int64_t rows, columns, group_size;
  };
  for (const auto& [rows, columns, group_size] :
       {Case{48, 128, 64}, Case{24, 64, -1}, Case{608, 512, 128}}) {
    constexpr std::array<size_t, 8> kOrder = {0, 2, 4, 6, 1, 3, 5, 7};  // column of nibble i
    const Group group = MakeGroups(columns, group_size, false);
    const auto n_size = static_cast<size_t>(rows), k_size = static_cast<size_t>(columns);
    const Ints codes = RandomInts(rows * columns, 0, 15);      // [columns, rows]
    const Ints zeros = RandomInts(group.count * rows, 0, 15);  // [groups, rows]
    const auto pack = [&](const Ints& values) {
      Ints nibbles;
      for (size_t i = 0; i < values.size(); i += 8) {
        for (const size_t column : kOrder) nibbles.push_back(values[i + column]);
      }
      return PackWords(nibbles, 4);
    };
    StoredWeights stored;
    stored.quantization = {{"quant_method", "awq"},
                           {"bits", 4},
                           {"group_size", group_size},
                           {"zero_point", true},
                           {"version", "gemm"}};
    stored.Add("m.qweight", DType::kI32, {columns, rows / 8}, pack(codes));
    stored.Add("m.qzeros", DType::kI32, {group.count, rows / 8}, pack(zeros));
    const Floats scales = AddScales(stored, "m.scales", {group.count, rows}, DType::kF16);
    ASSERT_EQ(codes.size(), n_size * k_size);
    const Floats expected = Dense(rows, columns, [&](size_t n, size_t k) {
      const size_t at = static_cast<size_t>(group.of[k]) * n_size + n;
      return static_cast<float>(codes[k * n_size + n] - zeros[at]) * scales[at];
    });
    ExpectLoads(stored, {rows, columns}, expected, fmt::format("awq {} x {}", rows, columns));
  }
}

// ---- compressed-tensors pack-quantized

struct PackedCase {
  int bits;
  int64_t rows, columns, group_size;  // -1: one scale per row
  bool symmetric, ordered;
  bool byte_zeros = false;  // before compressed-tensors 0.9.4
};

void ExpectPacked(const PackedCase& c) {
  const int half = 1 << (c.bits - 1);
  const Group group = MakeGroups(c.columns, c.group_size, c.ordered);
  const auto rows = static_cast<size_t>(c.rows), columns = static_cast<size_t>(c.columns);
  const auto groups = static_cast<size_t>(group.count);
  const Ints codes = RandomInts(c.rows * c.columns, -half, half - 1);
  const Ints zeros = RandomInts(c.rows * group.count, c.symmetric ? 0 : -half,
                                c.symmetric ? 0 : half - 1);  // [rows, groups]
  StoredWeights stored;
  Json weights = {{"num_bits", c.bits},
                  {"type", "int"},
                  {"symmetric", c.symmetric},
                  {"strategy", c.group_size == -1 ? "channel" : "group"}};
  if (c.group_size != -1) weights["group_size"] = c.group_size;
  if (c.ordered) weights["actorder"] = "group";
  stored.quantization = {
      {"quant_method", "compressed-tensors"},
      {"format", "pack-quantized"},
      {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
  std::vector<uint32_t> words, zero_words;
  for (size_t n = 0; n < rows; ++n) {
    Ints row;
    for (size_t k = 0; k < columns; ++k) row.push_back(codes[n * columns + k] + half);
    const auto packed = PackWords(row, c.bits);
    words.insert(words.end(), packed.begin(), packed.end());
  }
  const size_t zero_rows = (rows * static_cast<size_t>(c.bits) + 31) / 32;
  zero_words.resize(zero_rows * groups);
  for (size_t g = 0; g < groups; ++g) {
    Ints column;
    for (size_t n = 0; n < rows; ++n) column.push_back(zeros[n * groups + g] + half);
    const auto packed = PackWords(column, c.bits);
    for (size_t w = 0; w < zero_rows; ++w) zero_words[w * groups + g] = packed[w];
  }
  stored.Add("m.weight_packed", DType::kI32, {c.rows, static_cast<int64_t>(words.size() / rows)},
             words);
  stored.Add("m.weight_shape", DType::kI64, {2}, std::vector<int64_t>{c.rows, c.columns});
  if (c.byte_zeros) {
    stored.Add("m.weight_zero_point", DType::kI8, {c.rows, group.count},
               std::vector<int8_t>(zeros.begin(), zeros.end()));
  } else if (!c.symmetric) {
    stored.Add("m.weight_zero_point", DType::kI32, {static_cast<int64_t>(zero_rows), group.count},
               zero_words);
  }
  const Floats scales = AddScales(stored, "m.weight_scale", {c.rows, group.count}, DType::kBF16);
  if (c.ordered) stored.Add("m.weight_g_idx", DType::kI32, {c.columns}, group.of);
  const Floats expected = Dense(c.rows, c.columns, [&](size_t n, size_t k) {
    const size_t at = n * groups + static_cast<size_t>(group.of[k]);
    return static_cast<float>(codes[n * columns + k] - zeros[at]) * scales[at];
  });
  ExpectLoads(stored, {c.rows, c.columns}, expected,
              fmt::format("packed {} bits, groups of {}", c.bits, c.group_size));
}

TEST(Dequantize, PackQuantizedOfAllBits) {
  for (const bool symmetric : {true, false}) {
    for (const bool ordered : {false, true}) {
      for (const int bits : {2, 3, 4, 5, 8}) {
        ExpectPacked({bits, 96, 96, 24, symmetric, ordered});
        ExpectPacked({bits, 96, 192, -1, symmetric, false});
      }
      ExpectPacked({4, 10, 36, 12, symmetric, ordered});  // the last word is half used
      ExpectPacked({8, 600, 512, 128, symmetric, ordered});
    }
  }
  ExpectPacked({4, 96, 96, 24, false, false, /*byte_zeros=*/true});
  ExpectPacked({8, 96, 192, -1, false, false, /*byte_zeros=*/true});
}

}  // namespace
}  // namespace oscar
