// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests upstream's dump directory. Our reader and torch read what we write, and damaged files are
// refused by name.
#include "export/formats/upstream_dump.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>

#include "export/formats/pt/pt_file.h"
#include "export/formats/pt/pt_writer.h"
#include "linalg/base/error.h"
#include "tests/capture/dump/sample_dump.h"
#include "tests/export/formats/torch_python.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::vector<int64_t> Lengths(const SampleDump& sample) {
  std::vector<int64_t> lengths;
  for (const auto& sequence : sample.sequences)
    lengths.push_back(static_cast<int64_t>(sequence.size()));
  return lengths;
}

fs::path Write(const SampleDump& sample, const std::string& name = "upstream-dump") {
  const fs::path path = TestScratch(name) / "dump";
  UpstreamDumpWriter writer(path, Lengths(sample));
  for (int index = 0; index < sample.num_layers; ++index) sample.WriteLayer(writer, index);
  EXPECT_FALSE(fs::exists(path));
  writer.Commit();
  return path;
}

// Writes a tensor file as the server would have left it.
template <typename T>
void Put(const fs::path& path, DType dtype, std::vector<int64_t> shape, std::vector<T> values) {
  fs::create_directories(path.parent_path());
  WritePt(path, TensorBytes{dtype, std::move(shape), std::as_bytes(std::span(values))},
          path.stem().string());
}

TEST(UpstreamDump, GivesBackWhatWentIn) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SampleDump sample;
    sample.dtype = dtype;
    const UpstreamDump dump(Write(sample), {});
    EXPECT_EQ(dump.origin().format, "upstream");
    EXPECT_EQ(dump.sequence_lengths(), (std::vector<int64_t>{4, 1, 3}));
    EXPECT_EQ(dump.skipped_tokens(), 4);  // the first sequence is shorter than the 6-token warm-up
    EXPECT_FALSE(dump.has(DumpTensor::kAttnOut));
    ASSERT_EQ(dump.layers().size(), 2u);
    for (int i = 0; i < 2; ++i) {
      DumpLayer expected = sample.Layer(i);
      expected.facts.reset();  // not in this format
      expected.scale = 1 / std::sqrt(3.0);
      expected.window.reset();
      EXPECT_EQ(dump.layers()[static_cast<size_t>(i)], expected);
      for (const DumpTensor tensor : {DumpTensor::kQ, DumpTensor::kK, DumpTensor::kV}) {
        const std::vector<std::byte> all = sample.Values(i, tensor);
        std::vector<std::byte> found(all.size());
        dump.ReadRows(static_cast<size_t>(i), tensor, 0, found);
        EXPECT_EQ(found, all);
        const auto row = static_cast<size_t>(expected.row_bytes(tensor));
        found.resize(2 * row);
        dump.ReadRows(static_cast<size_t>(i), tensor, 3, found);
        EXPECT_EQ(found, std::vector(all.begin() + static_cast<int64_t>(3 * row),
                                     all.begin() + static_cast<int64_t>(5 * row)));
      }
    }
  }
}

TEST(UpstreamDump, TheOptionsDecideWhatTheDirectoryDoesNotSay) {
  const SampleDump sample;
  const UpstreamDump dump(Write(sample),
                          {.skip_warmup = false, .scale = 0.125, .allow_layer_gaps = false});
  EXPECT_EQ(dump.layers()[0].scale, 0.125);
  EXPECT_EQ(dump.sequence_lengths(), (std::vector<int64_t>{4, 4, 1, 3}));
  EXPECT_EQ(dump.skipped_tokens(), 0);
}

TEST(UpstreamDump, LongSequencesGetChunksOfTheirOwn) {
  SampleDump sample;
  sample.num_layers = 1;
  const std::vector<int64_t> lengths = {5000, 4000, 9000, 1, kUpstreamChunkTokens};
  const fs::path path = TestScratch("upstream-chunks") / "dump";
  DumpLayer layer = sample.Layer(0);
  layer.num_q_heads = layer.num_kv_heads = layer.head_dim = layer.v_head_dim = 1;
  {
    UpstreamDumpWriter writer(path, lengths);
    writer.BeginLayer(layer);
    float next = 0;
    for (size_t s = 0; s < lengths.size(); ++s) {
      std::vector<float> values(static_cast<size_t>(lengths[s]));
      for (float& value : values) value = next++;
      for (const DumpTensor tensor : {DumpTensor::kQ, DumpTensor::kK, DumpTensor::kV})
        writer.WriteSequence(tensor, static_cast<int64_t>(s), std::as_bytes(std::span(values)));
    }
    writer.EndLayer();
    writer.Commit();
  }
  EXPECT_TRUE(fs::exists(path / "layer_3/q/5.pt"));
  EXPECT_FALSE(fs::exists(path / "layer_3/q/6.pt"));
  const UpstreamDump dump(path, {});
  EXPECT_EQ(dump.sequence_lengths(), lengths);
  std::vector<float> found(18001 + kUpstreamChunkTokens);
  dump.ReadRows(0, DumpTensor::kV, 0, std::as_writable_bytes(std::span(found)));
  for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], static_cast<float>(i));
}

TEST(UpstreamDump, TorchReadsItAsTheirFitterDoes) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SampleDump sample;
    sample.dtype = dtype;
    sample.sequences = {{5, 6, 7, 8, 9, 1, 2}, {3}};
    sample.score_rows.clear();
    const fs::path path = Write(sample);
    OSCAR_TORCH_OR_SKIP(output, "--dump '" + path.string() + "'");
    const char* const name = dtype == DType::kF32    ? "torch.float32"
                             : dtype == DType::kBF16 ? "torch.bfloat16"
                                                     : "torch.float16";
    EXPECT_EQ(output, std::string("[(3, [8, 4, 3], [8, 2, 3], [8, 2, 2], '") + name +
                          "', [[6], [7, 1]]), (10, [8, 4, 3], [8, 2, 3], [8, 2, 2], '" + name +
                          "', [[6], [7, 1]])]\n");
  }
}

// A token budget may end a dump inside a sequence, although seq_lens contains the full length.
TEST(UpstreamDump, TheLastSequenceMayBeCut) {
  const SampleDump sample;
  const fs::path path = Write(sample);
  for (const char* layer : {"layer_3", "layer_10"})
    Put<int32_t>(path / layer / "seq_lens/1.pt", DType::kI32, {4}, {4, 1, 5, 2});
  EXPECT_EQ(UpstreamDump(path, {}).sequence_lengths(), (std::vector<int64_t>{4, 1, 3}));
}

void ExpectRefused(const char* reason, const std::function<void(const fs::path&)>& change,
                   const UpstreamDumpOptions& options = {}) {
  const SampleDump sample;
  const fs::path path = Write(sample, "upstream-hostile");
  change(path);
  const std::string refusal = ErrorOf<InputError>([&] {
    const UpstreamDump dump(path, options);
    for (size_t i = 0; i < dump.layers().size(); ++i) {
      for (const DumpTensor tensor : {DumpTensor::kQ, DumpTensor::kK, DumpTensor::kV}) {
        std::vector<std::byte> all(static_cast<size_t>(8 * dump.layers()[i].row_bytes(tensor)));
        dump.ReadRows(i, tensor, 0, all);
      }
    }
  });
  EXPECT_EQ(refusal.empty(), reason[0] == '\0') << refusal;
  EXPECT_TRUE(Says(refusal, reason));
}

std::vector<float> Ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = 1 + static_cast<float>(i);
  return values;
}

TEST(UpstreamDump, WhatIsMissingIsNamed) {
  ExpectRefused("contains no layer_<id>", [](const fs::path& path) {
    fs::remove_all(path / "layer_3");
    fs::remove_all(path / "layer_10");
  });
  ExpectRefused("layer_10/v: missing",
                [](const fs::path& path) { fs::remove_all(path / "layer_10/v"); });
  ExpectRefused("it says where each sequence ends",
                [](const fs::path& path) { fs::remove_all(path / "layer_3/seq_lens"); });
  ExpectRefused("layer_3/k: has 1 chunks, but seq_lens has 2",
                [](const fs::path& path) { fs::remove(path / "layer_3/k/1.pt"); });
  ExpectRefused("layer_3/seq_lens: chunk 1 is missing", [](const fs::path& path) {
    fs::rename(path / "layer_3/seq_lens/1.pt", path / "layer_3/seq_lens/2.pt");
  });
  ExpectRefused("is not a chunk", [](const fs::path& path) {
    fs::rename(path / "layer_3/q/1.pt", path / "layer_3/q/1.pt.part");
  });
  ExpectRefused("is not a layer's directory",
                [](const fs::path& path) { fs::rename(path / "layer_3", path / "layer_x"); });
  ExpectRefused("no chunk except the warm-up", [](const fs::path& path) {
    for (const char* side : {"q", "k", "v", "seq_lens"})
      fs::remove(path / "layer_3" / side / "1.pt");
  });
  const auto third_layer = [](const fs::path& path) {
    fs::copy(path / "layer_10", path / "layer_20", fs::copy_options::recursive);
  };
  ExpectRefused("layers 10 and 20 are spaced differently from layers 3 and 10", third_layer);
  ExpectRefused("", third_layer, {.skip_warmup = true, .scale = {}, .allow_layer_gaps = true});
}

TEST(UpstreamDump, GeometryThatDoesNotFitIsRefused) {
  ExpectRefused("expected [8, 2, 3] float32", [](const fs::path& path) {
    Put(path / "layer_3/k/1.pt", DType::kF32, {7, 2, 3}, Ramp(42));
  });
  ExpectRefused("expected [tokens, heads, head_dim]", [](const fs::path& path) {
    Put(path / "layer_3/q/1.pt", DType::kF32, {8, 12}, Ramp(96));
  });
  ExpectRefused("4 query heads are not a multiple of 3 KV heads", [](const fs::path& path) {
    Put(path / "layer_3/k/1.pt", DType::kF32, {8, 3, 3}, Ramp(72));
  });
  ExpectRefused("expected [8, 2, 2] float32", [](const fs::path& path) {
    Put(path / "layer_3/v/1.pt", DType::kF32, {8, 4, 2}, Ramp(64));
  });
  ExpectRefused("its sequences have 7 tokens, but the chunk has 8", [](const fs::path& path) {
    Put<int32_t>(path / "layer_3/seq_lens/1.pt", DType::kI32, {2}, {4, 3});
  });
  ExpectRefused("every layer must have the same tokens", [](const fs::path& path) {
    Put<int32_t>(path / "layer_10/seq_lens/1.pt", DType::kI32, {2}, {5, 3});
  });
  ExpectRefused("a sequence of -4 tokens", [](const fs::path& path) {
    Put<int32_t>(path / "layer_3/seq_lens/1.pt", DType::kI32, {3}, {-4, 8, 4});
  });
  ExpectRefused("expected [n] int32", [](const fs::path& path) {
    Put<float>(path / "layer_3/seq_lens/1.pt", DType::kF32, {2}, {4, 4});
  });
  ExpectRefused("expected one tensor, found a dict", [](const fs::path& path) {
    WritePt(path / "layer_3/seq_lens/1.pt", PtOutDict{}, "1");
  });
  ExpectRefused("KV heads 0 and 1 are copies of each other", [](const fs::path& path) {
    for (const auto& [side, dim] : {std::pair("k", 3), std::pair("v", 2)}) {
      std::vector<float> values;
      for (int t = 0; t < 8; ++t) {
        for (int head = 0; head < 2; ++head) {
          for (int d = 0; d < dim; ++d) values.push_back(static_cast<float>(1 + 5 * t + d));
        }
      }
      Put(path / "layer_3" / side / "1.pt", DType::kF32, {8, 2, dim}, values);
    }
  });
}

// Heads are compared with each other, not with the heads of the next token.
TEST(UpstreamDump, TokensMayBeEqual) {
  ExpectRefused("", [](const fs::path& path) {
    for (const auto& [side, dim] : {std::pair("k", 3), std::pair("v", 2)}) {
      const std::vector<float> values(static_cast<size_t>(8 * dim), 2);
      Put(path / "layer_3" / side / "1.pt", DType::kF32, {8, 1, dim}, values);
    }
  });
}

TEST(UpstreamDump, ANanIsRefusedWhereItIsRead) {
  ExpectRefused("layer_3/k/1.pt: row 5, head 1 is NaN", [](const fs::path& path) {
    std::vector<float> values = Ramp(48);
    values[5 * 6 + 4] = std::nanf("");
    Put(path / "layer_3/k/1.pt", DType::kF32, {8, 2, 3}, values);
  });
}

TEST(UpstreamDump, AFileCutAnywhereIsRefused) {
  const SampleDump sample;
  for (const char* name : {"layer_3/q/1.pt", "layer_10/v/1.pt", "layer_3/seq_lens/1.pt"}) {
    const fs::path path = Write(sample, "upstream-cut");
    const auto whole = fs::file_size(path / name);
    for (int i = 0; i < 10; ++i) {
      fs::resize_file(path / name, whole - 1 - (whole - 1) * static_cast<uintmax_t>(i) / 10);
      EXPECT_THROW(UpstreamDump(path, {}), InputError) << name;
    }
  }
}

}  // namespace
}  // namespace oscar
