// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors for an ONNX graph: a model that has only initializers. onnx.load reads it, and
// onnx.compose or a few lines of Python put it into a model (onnx/onnx.proto: ModelProto,
// GraphProto, TensorProto). The bytes depend only on the values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "export/formats/pt/pt_file.h"

namespace oscar {

struct OnnxInitializer {
  std::string name;
  FloatTensorPtr values;  // float32
};

// Writes the file atomically. Throws InputError above 2 GiB, which a protocol buffer cannot hold.
void WriteOnnxInitializers(const std::filesystem::path& path, std::string_view graph_name,
                           const std::vector<OnnxInitializer>& initializers,
                           const std::map<std::string, std::string>& metadata);

}  // namespace oscar
