// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/dump/dump_format.h"

#include <fmt/format.h>

namespace oscar::dump_format {

std::string LayerPath(int layer_id) { return fmt::format("/{}/{}", kLayers, layer_id); }

std::string LayerPath(int layer_id, std::string_view dataset) {
  return fmt::format("/{}/{}/{}", kLayers, layer_id, dataset);
}

std::string ReaderPath(int layer_id, int reader_id) {
  return fmt::format("{}/{}", LayerPath(layer_id, kReadBy), reader_id);
}

int64_t TensorBytes(const DumpLayer& layer, int64_t tokens) {
  int64_t bytes = layer.latent() ? layer.kv_b_bytes() : 0;
  for (const DumpTensor tensor : layer.tensors()) bytes += tokens * layer.row_bytes(tensor);
  for (const CacheReader& reader : layer.readers) {
    for (const DumpTensor tensor : kReaderTensors)
      bytes += tokens * layer.Reader(reader).row_bytes(tensor);
  }
  return bytes;
}

}  // namespace oscar::dump_format
