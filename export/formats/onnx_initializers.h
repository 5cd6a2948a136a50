// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes tensors for an ONNX graph, as a model that has only initializers (onnx/onnx.proto:
// ModelProto, GraphProto, TensorProto). onnx.load reads it, and onnx.compose or a few lines of
// Python merge it into another model. The bytes depend only on the arguments.
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

// Writes the file atomically. Throws InputError above 2 GiB, the limit of protocol buffers.
void WriteOnnxInitializers(const std::filesystem::path& path, std::string_view graph_name,
                           const std::vector<OnnxInitializer>& initializers,
                           const std::map<std::string, std::string>& metadata);

}  // namespace oscar
