// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests arms whose keys and values come from a file. The dump's own rows have no error. Rows of a
// scalar codec give the numbers of the arm that simulates the codec.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>

#include "capture/dump/dump_format.h"
#include "capture/dump/dump_reader.h"
#include "capture/dump/hdf5_file.h"
#include "capture/model/run/dump_observer.h"
#include "export/simulate/quantized_rows.h"
#include "linalg/affine_codec.h"
#include "tests/export/validate/tiny_validation.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const auto kWholeDump = [](size_t) { return true; };

std::shared_ptr<const DumpReader> TinyDump() {
  static const auto dump = [] {
    const fs::path path = TestScratch("quantized_dump") / "d.h5";
    const TinyModel model;
    ModelSource source(model.checkpoint, model.spec, TinyTexts(1, 2, 400), at::kCPU, at::kFloat);
    DumpWriter writer(path, source.sequences(), {});
    DumpObserver observer(writer, nullptr, at::kFloat);
    source.Run(0, observer, kWholeDump);
    writer.Commit({});
    return std::make_shared<const DumpReader>(path);
  }();
  return dump;
}

using RowChange = std::function<void(std::span<float> row)>;  // [dim]

// Writes the dump's keys and values with `change` applied to each row. Returns the file's path.
fs::path QuantizedDump(const std::string& name, const DumpReader& dump, const RowChange& change) {
  const fs::path path = TestScratch("quantized_" + name) / "q.h5";
  Hdf5Writer file(path);
  file.SetAttribute("/", "bits_per_element", 3.0);
  const auto tokens = std::ssize(dump.token_ids());
  file.Write<int32_t>("/input_ids", {tokens}, dump.token_ids());
  for (size_t i = 0; i < dump.layers().size(); ++i) {
    const DumpLayer& layer = dump.layers()[i];
    for (const DumpTensor tensor : {DumpTensor::kK, DumpTensor::kV}) {
      const auto dim = static_cast<size_t>(layer.dim(tensor));
      std::vector<float> rows(static_cast<size_t>(tokens * layer.heads(tensor)) * dim);
      dump.ReadRows(i, tensor, 0, std::as_writable_bytes(std::span(rows)));
      for (size_t row = 0; row < rows.size(); row += dim) change(std::span(rows).subspan(row, dim));
      file.Write<float>(dump_format::LayerPath(layer.layer_id, DumpTensorName(tensor)),
                        layer.shape(tensor, tokens), rows);
    }
  }
  file.Commit();
  return path;
}

Json ValidateQuantized(const fs::path& file, std::vector<std::string> arms) {
  ValidationOptions options = QuickOptions(std::move(arms));
  options.measure_in_float32 = true;
  options.round_to_bf16 = false;
  options.methods.windows = {16, 64};
  options.methods.guests = {QuantizedMethod("mine", file, *TinyDump())};
  DumpSource source(TinyDump(), at::kCPU, at::kFloat);
  return ValidateDump(source, {}, Artifact::Open(TinyArtifact()), options, {});
}

TEST(QuantizedArm, TheDumpItselfHasNoError) {
  const fs::path file = QuantizedDump("same", *TinyDump(), [](std::span<float>) {});
  const Json v = ValidateQuantized(file, {"naive", "mine", "mine+windows"});
  EXPECT_GT(Kl(v, "naive"), 0.01);
  for (const char* arm : {"mine", "mine+windows"}) {
    const Json& local = ArmOf(v, arm).at("local");
    EXPECT_EQ(local.at("kl").at("max"), 0) << arm;
    EXPECT_EQ(local.at("output_rel_error"), 0) << arm;
    EXPECT_EQ(local.at("k_mse"), 0) << arm;
    EXPECT_EQ(local.at("v_mse"), 0) << arm;
  }
}

TEST(QuantizedArm, AScalarCodecIsTheArmOfItsMethod) {
  const fs::path file = QuantizedDump("naive", *TinyDump(), [](std::span<float> row) {
    QuantizeDequantizeAffineRow<float>(row, {.bits = 2, .quant_group_size = std::ssize(row)}, {},
                                       row);
  });
  const Json v = ValidateQuantized(file, {"naive", "naive+windows", "mine", "mine+windows"});
  EXPECT_EQ(ArmOf(v, "mine").at("local"), ArmOf(v, "naive").at("local"));
  EXPECT_EQ(ArmOf(v, "mine+windows").at("local"), ArmOf(v, "naive+windows").at("local"));
  EXPECT_NE(ArmOf(v, "mine").at("local"), ArmOf(v, "mine+windows").at("local"));
  EXPECT_EQ(ArmOf(v, "mine").at("bits_per_element").at("paper"), 3);
}

}  // namespace
}  // namespace oscar
