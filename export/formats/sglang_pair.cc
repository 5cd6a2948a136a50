// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/sglang_pair.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "export/formats/pt/pt_writer.h"
#include "export/formats/rotation_pair.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

PtOut FileValue(const SglangFile& file) {
  PtOutDict layers;
  for (const SglangFile::Layer& layer : file.layers) {
    PtOutDict entry{{PtKey("layer_id"), layer.layer_id}};
    for (const SglangFile::Tensor& tensor : layer.tensors) {
      if (tensor.values) entry.emplace_back(tensor.key, tensor.values);
    }
    layers.emplace_back(layer.layer_id, std::move(entry));
  }
  PtOutDict top{{PtKey("format_version"), file.version},
                {PtKey("objective"), file.objective},
                {PtKey("source_grouping"), file.source_grouping}};
  if (!file.value_target.empty()) top.emplace_back("value_target", file.value_target);
  if (!file.transform.is_null()) top.emplace_back("transform", PtFromJson(file.transform));
  if (!file.calibration.is_null()) top.emplace_back("calibration", PtFromJson(file.calibration));
  top.emplace_back("layers", std::move(layers));
  return top;
}

void CheckReadBack(const RotationFile& read, const SglangFile& file) {
  const auto expect = [&](bool holds, std::string_view what) {
    if (!holds) {
      throw ResourceError(
          fmt::format("{}: {} differs from the written data when it is read back; check the disk",
                      read.path.string(), what));
    }
  };
  expect(read.layers.size() == file.layers.size(), "the number of layers");
  expect(read.objective == file.objective && read.format_version == file.version &&
             read.source_grouping == file.source_grouping && read.transform == file.transform &&
             read.calibration == file.calibration,
         "the header");
  for (size_t i = 0; i < read.layers.size(); ++i) {
    expect(read.layers[i].layer_id == file.layers[i].layer_id, "a layer id");
    for (const SglangFile::Tensor& tensor : file.layers[i].tensors)
      expect(SameBits(read.layers[i].*tensor.read, tensor.values), tensor.key);
  }
}

}  // namespace

bool SameBits(const FloatTensorPtr& a, const FloatTensorPtr& b) {
  if (!a || !b) return !a && !b;
  return a->shape == b->shape && a->values.size() == b->values.size() &&
         std::memcmp(a->values.data(), b->values.data(), a->values.size() * sizeof(float)) == 0;
}

void WriteSglangPair(const std::filesystem::path& directory, const SglangFile& k,
                     const SglangFile& v) {
  for (const SglangFile* file : {&k, &v})
    WritePt(directory / file->name, FileValue(*file), file->name.stem().string());
  const RotationPair pair = OpenRotationPair(directory / k.name, directory / v.name);
  CheckReadBack(pair.k, k);
  CheckReadBack(pair.v, v);
}

}  // namespace oscar
