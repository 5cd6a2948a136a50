// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that invalid dumps are refused. Each is a valid dump in which HDF5's own API changed one
// thing.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "capture/dump/dump_reader.h"
#include "linalg/base/error.h"
#include "tests/capture/dump/sample_dump.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

fs::path Damaged(const SampleDump& sample, const std::function<void(hid_t)>& change) {
  const fs::path path = TestScratch("hostile-dump") / "d.h5";
  sample.Write(path);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, access);
  EXPECT_GE(file, 0);
  change(file);
  EXPECT_GE(H5Fclose(file), 0);
  H5Pclose(access);
  return path;
}

void ExpectRefused(const char* reason, const std::function<void(hid_t)>& change,
                   const SampleDump& sample = {}) {
  const fs::path path = Damaged(sample, change);
  const std::string refusal = ErrorOf<InputError>([&] { const DumpReader dump(path); });
  EXPECT_TRUE(Says(refusal, reason));
}

void Replace(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape,
             const void* values = nullptr) {
  if (H5Lexists(file, name, H5P_DEFAULT) > 0) H5Ldelete(file, name, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(dataset, 0);
  hsize_t bytes = H5Tget_size(type);
  for (const hsize_t dim : shape) bytes *= dim;
  const std::vector<char> zeros(bytes);
  H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values ? values : zeros.data());
}

template <typename T>
void SetAttribute(hid_t file, const char* object, const char* name, hid_t type, T value) {
  const hid_t owner = H5Oopen(file, object, H5P_DEFAULT);
  H5Adelete(owner, name);
  const hid_t attribute =
      H5Acreate2(owner, name, type, H5Screate(H5S_SCALAR), H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(attribute, 0);
  ASSERT_GE(H5Awrite(attribute, type, &value), 0);
}

void SetInt(hid_t file, const char* object, const char* name, int64_t value) {
  SetAttribute(file, object, name, H5T_STD_I64LE, value);
}

TEST(HostileDump, TheSampleItselfIsGood) {
  const DumpReader dump(Damaged({}, [](hid_t) {}));
  EXPECT_EQ(dump.layers().size(), 2u);
}

TEST(HostileDump, AnotherFormatOrVersion) {
  ExpectRefused("not a dump of oscar-capture", [](hid_t file) { H5Adelete(file, "format"); });
  ExpectRefused("format_version is 4, but this program reads 3",
                [](hid_t file) { SetInt(file, "/", "format_version", 4); });
  ExpectRefused("format_version is 2; such dumps do not store their number of layers",
                [](hid_t file) { SetInt(file, "/", "format_version", 2); });
  // Version 1, which earlier programs wrote, lacks rope and layers that read another layer's keys.
  ExpectRefused("format_version is 1; such dumps store neither the rotary embedding of their keys",
                [](hid_t file) { SetInt(file, "/", "format_version", 1); });
  for (const char* name : {"rope", "qk_norm", "not_foldable"}) {
    ExpectRefused("has no attribute", [=](hid_t file) {
      const hid_t layer = H5Oopen(file, "/layer/3", H5P_DEFAULT);
      H5Adelete(layer, name);
    });
  }
  ExpectRefused("has no attribute \"format_version\"",
                [](hid_t file) { H5Adelete(file, "format_version"); });
  ExpectRefused("has no attribute \"model_digest\"",
                [](hid_t file) { H5Adelete(file, "model_digest"); });
}

TEST(HostileDump, ObjectsThatAreMissingOrUnknown) {
  for (const char* name : {"/input_ids", "/sequence_offsets", "/layer/3/q", "/layer/10/k",
                           "/layer/3/v", "/layer/3/attn_out"}) {
    ExpectRefused("is missing", [=](hid_t file) { H5Ldelete(file, name, H5P_DEFAULT); });
  }
  ExpectRefused("expected a group with one member per layer",
                [](hid_t file) { H5Ldelete(file, "/layer", H5P_DEFAULT); });
  ExpectRefused("contains no layers", [](hid_t file) {
    H5Ldelete(file, "/layer/3", H5P_DEFAULT);
    H5Ldelete(file, "/layer/10", H5P_DEFAULT);
  });
  for (const char* layer : {"/layer/3", "/layer/10"}) {
    ExpectRefused("num_layers is 2, but the dump has 1",
                  [=](hid_t file) { H5Ldelete(file, layer, H5P_DEFAULT); });
  }
  ExpectRefused("has no attribute \"num_layers\"",
                [](hid_t file) { H5Adelete(file, "num_layers"); });
  ExpectRefused("expected uint8 [8], found uint8 [7]",
                [](hid_t file) { Replace(file, "/counted", H5T_STD_U8LE, {7}); });
  const uint8_t two[8] = {0, 1, 2};
  ExpectRefused("counted: contains values other than 0 and 1",
                [&](hid_t file) { Replace(file, "/counted", H5T_STD_U8LE, {8}, two); });
  ExpectRefused("must all be present",
                [](hid_t file) { H5Ldelete(file, "/layer/3/lse", H5P_DEFAULT); });
  ExpectRefused("must all be present", [](hid_t file) {
    for (const char* name : {"/layer/10/lse", "/layer/10/scores", "/layer/10/score_rows"})
      H5Ldelete(file, name, H5P_DEFAULT);
  });
  ExpectRefused("contains \"extra\", which does not belong in a dump of version 3",
                [](hid_t file) { Replace(file, "/extra", H5T_STD_I32LE, {1}); });
  ExpectRefused("kind is \"gqa\", but the layer has latents", [](hid_t file) {
    Replace(file, "/layer/3/c_kv", H5T_IEEE_F32LE, {8, 2});
  });
  ExpectRefused("kv_b: does not belong in a layer of kind", [](hid_t file) {
    Replace(file, "/layer/3/kv_b", H5T_IEEE_F32LE, {4, 3, 2});
  });
  for (const char* name : {"/layer/03", "/layer/-1", "/layer/x", "/layer/99999999999"}) {
    ExpectRefused("expected groups named by layer numbers", [=](hid_t file) {
      H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    });
  }
  ExpectRefused("external link", [](hid_t file) {
    H5Ldelete(file, "/layer/3/v", H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/", file, "/layer/3/v", H5P_DEFAULT, H5P_DEFAULT);
  });
  ExpectRefused("soft link", [](hid_t file) {
    H5Ldelete(file, "/layer/3/v", H5P_DEFAULT);
    H5Lcreate_soft("/layer/10/v", file, "/layer/3/v", H5P_DEFAULT, H5P_DEFAULT);
  });
}

TEST(HostileDump, ShapesThatDoNotFitTheGeometry) {
  const auto replaced = [](const char* name, hid_t type, const std::vector<hsize_t>& shape) {
    return [=](hid_t file) { Replace(file, name, type, shape); };
  };
  ExpectRefused("expected float32 [8, 4, 3], found float32 [8, 4, 2]",
                replaced("/layer/3/q", H5T_IEEE_F32LE, {8, 4, 2}));
  ExpectRefused("expected float32 [8, 2, 3], found float32 [7, 2, 3]",
                replaced("/layer/3/k", H5T_IEEE_F32LE, {7, 2, 3}));
  ExpectRefused("found float32 [8, 6]", replaced("/layer/3/k", H5T_IEEE_F32LE, {8, 6}));
  ExpectRefused("expected float32 [8, 2, 2], found float64 [8, 2, 2]",
                replaced("/layer/3/v", H5T_IEEE_F64LE, {8, 2, 2}));
  ExpectRefused("int32 values, expected float32", replaced("/layer/3/q", H5T_STD_I32LE, {8, 4, 3}));
  ExpectRefused("attribute dtype", replaced("/layer/3/q", H5T_STD_U16LE, {8, 4, 3}));
  ExpectRefused("expected float32 [5, 4, 4]",
                replaced("/layer/3/scores", H5T_IEEE_F32LE, {5, 4, 3}));
  ExpectRefused("expected float32 [8, 4]", replaced("/layer/3/lse", H5T_IEEE_F32LE, {8, 3}));
}

TEST(HostileDump, GeometryThatAttentionCannotHave) {
  ExpectRefused("num_kv_heads is 0",
                [](hid_t file) { SetInt(file, "/layer/3", "num_kv_heads", 0); });
  ExpectRefused("num_q_heads is -4",
                [](hid_t file) { SetInt(file, "/layer/3", "num_q_heads", -4); });
  ExpectRefused("head_dim is 9223372036854775807", [](hid_t file) {
    SetInt(file, "/layer/3", "head_dim", std::numeric_limits<int64_t>::max());
  });
  ExpectRefused("4 query heads are not a multiple of 3 KV heads",
                [](hid_t file) { SetInt(file, "/layer/3", "num_kv_heads", 3); });
  ExpectRefused("expected float32 [8, 4, 3]",
                [](hid_t file) { SetInt(file, "/layer/3", "num_kv_heads", 4); });
  ExpectRefused("the window has -1 tokens",
                [](hid_t file) { SetInt(file, "/layer/3", "window", -1); });
  ExpectRefused("scale is nan", [](hid_t file) {
    SetAttribute(file, "/layer/3", "scale", H5T_IEEE_F64LE, std::nan(""));
  });
  ExpectRefused("softcap is -1", [](hid_t file) {
    SetAttribute(file, "/layer/3", "softcap", H5T_IEEE_F64LE, -1.0);
  });
  ExpectRefused("latent_rank", [](hid_t file) {  // kind "mla" without a latent_rank
    const hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 3);
    const std::array<char, 3> kind = {'m', 'l', 'a'};
    SetAttribute(file, "/layer/3", "kind", text, kind);
  });
}

TEST(HostileDump, SequencesThatGoDown) {
  const auto offsets = [](std::vector<int64_t> values) {
    return [values = std::move(values)](hid_t file) {
      Replace(file, "/sequence_offsets", H5T_STD_I64LE, {values.size()}, values.data());
    };
  };
  ExpectRefused("entry 2 is 3 after 4", offsets({0, 4, 3, 8}));
  ExpectRefused("entry 2 is 4 after 4", offsets({0, 4, 4, 8}));
  ExpectRefused("expected 0, then the end", offsets({1, 4, 5, 8}));
  ExpectRefused("expected 0, then the end", offsets({0}));
  ExpectRefused("ends at token 9, but input_ids holds 8", offsets({0, 4, 5, 9}));
  ExpectRefused("token 2 has id -7", [](hid_t file) {
    const std::vector<int32_t> ids = {1, 2, -7, 4, 5, 6, 7, 8};
    Replace(file, "/input_ids", H5T_STD_I32LE, {8}, ids.data());
  });
  ExpectRefused("token 3 comes after 4, expected ascending indices below 8", [](hid_t file) {
    const std::vector<int64_t> rows = {2, 4, 3, 6, 7};
    Replace(file, "/layer/3/score_rows", H5T_STD_I64LE, {5}, rows.data());
  });
  ExpectRefused("token 8 comes after 6", [](hid_t file) {
    const std::vector<int64_t> rows = {2, 3, 4, 6, 8};
    Replace(file, "/layer/3/score_rows", H5T_STD_I64LE, {5}, rows.data());
  });
  ExpectRefused("differs from that of the first layer", [](hid_t file) {
    const std::vector<int64_t> rows = {1, 3, 4, 6, 7};
    Replace(file, "/layer/10/score_rows", H5T_STD_I64LE, {5}, rows.data());
  });
}

TEST(HostileDump, ReadersThatDoNotFit) {
  SampleDump sample;
  sample.readers = true;
  const auto expect = [&](const char* reason, const std::function<void(hid_t)>& change) {
    ExpectRefused(reason, change, sample);
  };
  expect("/layer/3/read_by/12/attn_out: is missing",
         [](hid_t file) { H5Ldelete(file, "/layer/3/read_by/12/attn_out", H5P_DEFAULT); });
  expect("/layer/3/read_by/12/q: is missing",
         [](hid_t file) { H5Ldelete(file, "/layer/3/read_by/12/q", H5P_DEFAULT); });
  expect("expected float32 [8, 2, 2]", [](hid_t file) {
    Replace(file, "/layer/3/read_by/12/attn_out", H5T_IEEE_F32LE, {8, 4, 2});
  });
  expect("expected float32 [8, 0, 3]", [](hid_t file) {
    Replace(file, "/layer/3/read_by/12/q", H5T_IEEE_F32LE, {8, 6});
  });
  expect("layer 12 reads 2 KV heads with 3 query heads", [](hid_t file) {
    Replace(file, "/layer/3/read_by/12/q", H5T_IEEE_F32LE, {8, 3, 3});
    Replace(file, "/layer/3/read_by/12/attn_out", H5T_IEEE_F32LE, {8, 3, 2});
  });
  expect("contains \"k\", which does not belong in a dump of version 3", [](hid_t file) {
    Replace(file, "/layer/3/read_by/12/k", H5T_IEEE_F32LE, {8, 2, 3});
  });
  expect("expected groups named by layer numbers", [](hid_t file) {
    H5Gcreate2(file, "/layer/3/read_by/x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  });
  expect("qk_norm is 7", [](hid_t file) { SetInt(file, "/layer/3", "qk_norm", 7); });
}

// Values are read only after the file has been opened.
TEST(HostileDump, ANanIsFoundWhereItIsRead) {
  const fs::path path = Damaged({}, [](hid_t file) {
    std::vector<float> values(8 * 2 * 3, 1);
    values[4 * 6 + 1 * 3 + 2] = std::nanf("");  // token 4, head 1, dimension 2
    Replace(file, "/layer/10/k", H5T_IEEE_F32LE, {8, 2, 3}, values.data());
  });
  const DumpReader dump(path);
  std::vector<std::byte> row(24), rows(48);
  EXPECT_NO_THROW(dump.ReadRows(1, DumpTensor::kK, 3, row));
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { dump.ReadRows(1, DumpTensor::kK, 3, rows); }),
                   "/layer/10/k: token 4, head 1, dimension 2 is NaN"));
}

TEST(HostileDump, RowsBeyondTheEndAndAFileCutAnywhere) {
  const fs::path path = Damaged({}, [](hid_t) {});
  {
    const DumpReader dump(path);
    std::vector<std::byte> row(24);
    EXPECT_THROW(dump.ReadRows(0, DumpTensor::kK, 8, row), InputError);
    EXPECT_THROW(dump.ReadRows(0, DumpTensor::kK, -1, row), InputError);
  }
  const auto whole = fs::file_size(path);
  for (int i = 0; i < 40; ++i) {
    fs::resize_file(path, whole - 1 - (whole - 1) * static_cast<uintmax_t>(i) / 40);
    EXPECT_THROW(DumpReader{path}, InputError);
  }
}

TEST(FirstNotFinite, KnowsEachType) {
  const auto first = [](DType dtype, const auto& values) {
    return FirstNotFinite(dtype, std::as_bytes(std::span(values)));
  };
  EXPECT_EQ(first(DType::kF32, std::array{1.0f, -3e38f, 1e-45f}), std::nullopt);
  EXPECT_EQ(first(DType::kF32, std::array{1.0f, -INFINITY}), 1u);
  EXPECT_EQ(first(DType::kBF16, std::array<uint16_t, 3>{0x3f80, 0xff7f, 0x7fc0}), 2u);
  EXPECT_EQ(first(DType::kF16, std::array<uint16_t, 3>{0x7bff, 0xfc00, 0}), 1u);
}

}  // namespace
}  // namespace oscar
