// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the HDF5 dump: a round trip returns the same values, the layout is the published one, and
// h5py can read it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "capture/dump/dump_format.h"
#include "capture/dump/dump_reader.h"
#include "capture/dump/hdf5_file.h"
#include "linalg/base/error.h"
#include "tests/capture/dump/sample_dump.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

TEST(Dump, GivesBackWhatWentIn) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int deflate : {0, 6}) {
      SampleDump sample;
      sample.dtype = dtype;
      sample.deflate_level = deflate;
      sample.logits_width = 5;
      if (dtype == DType::kF16) sample.score_rows = {7};
      const fs::path path = TestScratch("dump") / "d.h5";
      sample.Write(path);
      const DumpReader dump(path);
      EXPECT_EQ(dump.origin().model, "org/model@abc");
      EXPECT_EQ(dump.origin().format, "oscar-dump 3");
      EXPECT_EQ(dump.origin().data_digest, "d");
      EXPECT_EQ(dump.sequence_lengths(), (std::vector<int64_t>{4, 1, 3}));
      const std::vector<int32_t> ids(dump.token_ids().begin(), dump.token_ids().end());
      EXPECT_EQ(ids, (std::vector<int32_t>{5, 6, 7, 8, 9, 1, 2, 3}));
      EXPECT_EQ(dump.score_rows(), sample.score_rows);
      EXPECT_EQ(dump.logits_width(), 5);
      ASSERT_EQ(dump.layers().size(), 2u);
      for (size_t i = 0; i < 2; ++i) {
        const DumpLayer layer = sample.Layer(static_cast<int>(i));
        EXPECT_EQ(dump.layers()[i], layer);
        for (const DumpTensor tensor : kDumpTensors) {
          const auto row = static_cast<size_t>(layer.row_bytes(tensor));
          std::vector<std::byte> values(3 * row);
          dump.ReadRows(i, tensor, 4, values);
          const std::vector<std::byte> all = sample.Values(static_cast<int>(i), tensor);
          EXPECT_EQ(values, std::vector(all.begin() + static_cast<int64_t>(4 * row),
                                        all.begin() + static_cast<int64_t>(7 * row)))
              << DumpTensorName(tensor);
        }
        const Hdf5Reader file(path);
        const std::string group = fmt::format("/layer/{}/", layer.layer_id);
        std::vector<float> scores(4 * SampleDump::kLongest), lse(4);
        file.ReadRows<float>(group + "scores", {-1, 4, SampleDump::kLongest}, 0, scores);
        file.ReadRows<float>(group + "lse", {8, 4}, 7, lse);
        EXPECT_EQ(scores, std::vector<float>(4 * SampleDump::kLongest, 0.25f));
        EXPECT_EQ(lse, std::vector<float>(4, 0.5f));
      }
      std::vector<float> logits(10);
      Hdf5Reader(path).ReadRows<float>("/logits", {8, 5}, 6, logits);
      EXPECT_EQ(logits, std::vector<float>(10, 2));
    }
  }
}

// Other tools rely on these names.
TEST(Dump, HasThePublishedLayout) {
  const fs::path path = TestScratch("dump-layout") / "d.h5";
  SampleDump sample;
  sample.dtype = DType::kBF16;
  sample.logits_width = 5;
  sample.Write(path);
  const Hdf5Reader file(path);
  EXPECT_EQ(file.StringAttribute("/", "format"), "oscar-dump");
  EXPECT_EQ(file.IntAttribute("/", "format_version"), 3);
  for (const char* name :
       {"model", "model_digest", "tokenizer_digest", "data_digest", "tool_version"})
    EXPECT_TRUE(file.HasAttribute("/", name)) << name;
  EXPECT_EQ(file.Children("/"),
            (std::vector<std::string>{"input_ids", "layer", "logits", "sequence_offsets"}));
  EXPECT_EQ(file.Children("/layer"), (std::vector<std::string>{"10", "3"}));
  EXPECT_EQ(file.Children("/layer/10"),
            (std::vector<std::string>{"attn_out", "k", "lse", "q", "score_rows", "scores", "v"}));
  const auto expect = [&](const char* name, Hdf5Type type, const Hdf5Shape& shape) {
    EXPECT_EQ(file.dataset(name).type, type) << name;
    EXPECT_EQ(file.dataset(name).shape, shape) << name;
  };
  expect("/input_ids", Hdf5Type::kInt32, {8});
  expect("/sequence_offsets", Hdf5Type::kInt64, {4});
  EXPECT_EQ(file.Read<int64_t>("/sequence_offsets", {4}), (std::vector<int64_t>{0, 4, 5, 8}));
  expect("/layer/3/q", Hdf5Type::kUInt16, {8, 4, 3});
  expect("/layer/3/k", Hdf5Type::kUInt16, {8, 2, 3});
  expect("/layer/3/v", Hdf5Type::kUInt16, {8, 2, 2});
  expect("/layer/3/attn_out", Hdf5Type::kUInt16, {8, 4, 2});
  expect("/layer/3/lse", Hdf5Type::kFloat32, {8, 4});
  expect("/layer/3/score_rows", Hdf5Type::kInt64, {5});
  expect("/layer/3/scores", Hdf5Type::kFloat32, {5, 4, 4});
  expect("/logits", Hdf5Type::kFloat32, {8, 5});
  EXPECT_EQ(file.StringAttribute("/layer/3/q", "dtype"), "bf16");
  EXPECT_EQ(file.StringAttribute("/layer/3", "kind"), "gqa");
  EXPECT_EQ(file.IntAttribute("/layer/3", "num_q_heads"), 4);
  EXPECT_EQ(file.IntAttribute("/layer/3", "num_kv_heads"), 2);
  EXPECT_EQ(file.IntAttribute("/layer/3", "head_dim"), 3);
  EXPECT_EQ(file.IntAttribute("/layer/3", "v_head_dim"), 2);
  EXPECT_EQ(file.DoubleAttribute("/layer/3", "scale"), 0.25);
  EXPECT_EQ(file.IntAttribute("/layer/3", "window"), 0);
  EXPECT_EQ(file.IntAttribute("/layer/10", "window"), 2);
  EXPECT_EQ(file.DoubleAttribute("/layer/3", "softcap"), 0);
  EXPECT_EQ(file.StringAttribute("/layer/3", "rope"), "{}");
  EXPECT_EQ(file.IntAttribute("/layer/3", "qk_norm"), 0);
  EXPECT_EQ(file.IntAttribute("/layer/10", "qk_norm"), 1);
  EXPECT_EQ(file.StringAttribute("/layer/3", "not_foldable"), "so");
}

// If a layer has no keys and values of its own, its queries and outputs are stored with the layer
// whose cache it reads, however late they arrive.
TEST(Dump, HoldsTheReadersOfALayer) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const fs::path path = TestScratch("dump-readers") / "d.h5";
    SampleDump sample;
    sample.dtype = dtype;
    sample.readers = true;
    sample.Write(path);
    const Hdf5Reader file(path);
    EXPECT_EQ(file.Children("/layer/3/read_by"), (std::vector<std::string>{"12", "21"}));
    EXPECT_EQ(file.dataset("/layer/3/read_by/12/q").shape, (Hdf5Shape{8, 2, 3}));
    EXPECT_EQ(file.dataset("/layer/3/read_by/21/attn_out").shape, (Hdf5Shape{8, 4, 2}));
    EXPECT_FALSE(file.Exists("/layer/10/read_by"));
    const DumpReader dump(path);
    const DumpLayer source = sample.Layer(0);
    EXPECT_EQ(dump.layers()[0], source);
    for (size_t reader = 0; reader < 2; ++reader) {
      const DumpLayer own = source.Reader(source.readers[reader]);
      for (const DumpTensor tensor : kReaderTensors) {
        const auto row = static_cast<size_t>(own.row_bytes(tensor));
        std::vector<std::byte> values(3 * row);
        dump.ReadReaderRows(0, reader, tensor, 4, values);
        const std::vector<std::byte> all = sample.Values(own.layer_id, tensor, own);
        EXPECT_EQ(values, std::vector(all.begin() + static_cast<int64_t>(4 * row),
                                      all.begin() + static_cast<int64_t>(7 * row)));
      }
    }
    EXPECT_EQ(dump_format::TensorBytes(source, 8) - dump_format::TensorBytes(sample.Layer(1), 8),
              8 * (2 + 4) * (3 + 2) * DTypeBytes(dtype));
  }
}

TEST(Dump, SizesAreThoseOfTheValues) {
  SampleDump sample;
  EXPECT_EQ(dump_format::TensorBytes(sample.Layer(0), 8), 8 * (4 * 3 + 2 * 3 + 2 * 2 + 4 * 2) * 4);
  EXPECT_EQ(dump_format::ScoreBytes(5, 4, 4), 320);
  EXPECT_EQ(dump_format::LseBytes(8, 4), 128);
}

TEST(Dump, WithoutCommitThereIsNoFile) {
  const fs::path path = TestScratch("dump-unfinished") / "d.h5";
  {
    SampleDump sample;
    DumpWriter writer(path, sample.sequences, {});
    sample.WriteLayer(writer, 0);
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(path.parent_path()));
}

// Writes one dump of the first two sequences and one of the third, and joins them as `path`.
void WriteInParts(const SampleDump& sample, const fs::path& path) {
  const auto part_name = [](int part) { return fmt::format("part{}.h5", part); };
  DumpWriterOptions whole{.score_rows = sample.score_rows};
  for (int part = 0; part < 2; ++part) {
    const int64_t first = part == 0 ? 0 : 2, count = part == 0 ? 2 : 1;
    const auto begin = sample.sequences.begin() + first;
    const std::vector<std::vector<int32_t>> own(begin, begin + count);
    const std::vector<int64_t> rows =
        part == 0 ? std::vector<int64_t>{2, 3, 4} : std::vector<int64_t>{1, 2};
    const int64_t tokens = part == 0 ? 5 : 3, longest = part == 0 ? 4 : 3;
    DumpWriter writer(path.parent_path() / part_name(part), own, {.score_rows = rows});
    for (int index = 0; index < sample.num_layers; ++index) {
      const DumpLayer layer = sample.Layer(index);
      writer.BeginLayer(layer);
      for (const DumpTensor tensor : kDumpTensors) {
        const std::vector<std::byte> all = sample.Values(index, tensor);
        auto at = static_cast<size_t>((part == 0 ? 0 : 5) * layer.row_bytes(tensor));
        for (int64_t s = 0; s < count; ++s) {
          const size_t bytes =
              own[static_cast<size_t>(s)].size() * static_cast<size_t>(layer.row_bytes(tensor));
          writer.WriteSequence(tensor, s, std::span(all).subspan(at, bytes));
          at += bytes;
        }
      }
      writer.EndLayer();
      writer.WriteLse(0, std::vector<float>(static_cast<size_t>(tokens * 4), 0.5f));
      writer.WriteScores(0,
                         std::vector<float>(rows.size() * 4 * static_cast<size_t>(longest), 0.25f));
    }
    writer.Commit(sample.Origin());
    whole.parts.push_back({part_name(part), tokens, std::ssize(rows), longest});
  }
  DumpWriter writer(path, sample.sequences, whole);
  for (int index = 0; index < sample.num_layers; ++index) writer.BeginLayer(sample.Layer(index));
  writer.Commit(sample.Origin());
}

TEST(Dump, OfPartsReadsAsOne) {
  const fs::path path = TestScratch("dump-parts") / "d.h5";
  SampleDump sample;
  sample.dtype = DType::kBF16;
  WriteInParts(sample, path);
  const DumpReader dump(path);
  EXPECT_EQ(dump.sequence_lengths(), (std::vector<int64_t>{4, 1, 3}));
  EXPECT_EQ(dump.score_rows(), sample.score_rows);
  for (int index = 0; index < sample.num_layers; ++index) {
    for (const DumpTensor tensor : kDumpTensors) {
      std::vector<std::byte> read(sample.Values(index, tensor).size());
      dump.ReadRows(static_cast<size_t>(index), tensor, 0, read);
      EXPECT_TRUE(read == sample.Values(index, tensor)) << DumpTensorName(tensor);
    }
  }
}

TEST(Dump, OfPartsIsRefusedWithoutOneOfThem) {
  const fs::path path = TestScratch("dump-parts-refused") / "d.h5",
                 part = path.parent_path() / "part1.h5";
  const SampleDump sample;
  WriteInParts(sample, path);
  fs::rename(part, path.parent_path() / "away");
  EXPECT_THROW(DumpReader{path}, Error);
  SampleDump other;  // has more rows
  other.Write(part);
  EXPECT_THROW(DumpReader{path}, InputError);
  fs::copy_file(path, part, fs::copy_options::overwrite_existing);  // a dump that refers to itself
  EXPECT_THROW(DumpReader{path}, InputError);
}

TEST(Dump, H5pyReadsIt) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const fs::path path = TestScratch("dump-h5py") / "d.h5";
    SampleDump sample;
    sample.dtype = dtype;
    sample.deflate_level = dtype == DType::kF16 ? 1 : 0;
    dtype == DType::kBF16 ? WriteInParts(sample, path) : sample.Write(path);
    // Python must not load the sanitizers' preloaded runtime.
    const std::string command = std::string("env -u LD_PRELOAD '") + OSCAR_PYTHON + "' '" +
                                OSCAR_H5PY_SCRIPT + "' '" + path.string() + "' " +
                                std::string(DTypeName(dtype));
    const int status = std::system(command.c_str());
    constexpr int kNoH5py = 77, kNoPython = 127;
    if (WIFEXITED(status) && (WEXITSTATUS(status) == kNoH5py || WEXITSTATUS(status) == kNoPython))
      OSCAR_SKIP_WITHOUT_PACKAGE("h5py");
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace oscar
