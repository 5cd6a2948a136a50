// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes a small dump with reproducible values, and returns the same values for comparison.
#pragma once

#include <cstring>
#include <filesystem>
#include <vector>

#include "capture/dump/dump_writer.h"

namespace oscar {

struct SampleDump {
  DType dtype = DType::kF32;
  bool scores = true;
  int64_t logits_width = 0;
  int deflate_level = 0;
  std::vector<std::vector<int32_t>> sequences = {{5, 6, 7, 8}, {9}, {1, 2, 3}};
  std::vector<int64_t> score_rows = {2, 3, 4, 6, 7};
  int num_layers = 2;
  bool readers = false;  // two later layers read the first layer's cache

  static constexpr int64_t kTokens = 8, kLongest = 4;

  // Layer numbers need not start at 0 or be consecutive.
  DumpLayer Layer(int index) const {
    return {.layer_id = 3 + 7 * index,
            .num_q_heads = 4,
            .num_kv_heads = 2,
            .head_dim = 3,
            .v_head_dim = 2,
            .scale = 0.25,
            .window = index == 0 ? std::nullopt : std::optional<int64_t>(2),
            .softcap = 0,
            .dtype = dtype,
            .facts = DumpModelFacts{.rope = "{}", .qk_norm = index == 1, .not_foldable = "so"},
            .readers = index == 0 && readers ? std::vector<CacheReader>{{12, 2}, {21, 4}}
                                             : std::vector<CacheReader>{}};
  }

  // Returns [count] values, all different, in the dump's type.
  std::vector<std::byte> Values(int index, DumpTensor tensor) const {
    return Values(index, tensor, Layer(index));
  }
  std::vector<std::byte> Values(int index, DumpTensor tensor, const DumpLayer& layer) const {
    const int64_t count = kTokens * layer.heads(tensor) * layer.dim(tensor);
    std::vector<std::byte> bytes(static_cast<size_t>(count * DTypeBytes(dtype)));
    for (int64_t i = 0; i < count; ++i) {
      const auto bits16 =
          static_cast<uint16_t>(0x3c00 + 37 * i + 11 * static_cast<int>(tensor) + 5 * index);
      const uint32_t bits32 = uint32_t{bits16} << 16;
      const auto size = static_cast<size_t>(DTypeBytes(dtype));
      if (size == 2) {
        std::memcpy(&bytes[static_cast<size_t>(i) * size], &bits16, size);
      } else {
        std::memcpy(&bytes[static_cast<size_t>(i) * size], &bits32, size);
      }
    }
    return bytes;
  }

  DumpOrigin Origin() const {
    return {.format = {},
            .model = "org/model@abc",
            .model_digest = "m",
            .tokenizer_digest = "t",
            .data_digest = "d",
            .tool_version = "v"};
  }

  void WriteLayer(DumpSink& sink, int index) const {
    const DumpLayer layer = Layer(index);
    sink.BeginLayer(layer);
    for (const DumpTensor tensor : kDumpTensors) {
      if (!sink.wants(tensor)) continue;
      WriteTensor(sink, layer, tensor, Values(index, tensor));
    }
    sink.EndLayer();
  }

  void WriteTensor(DumpSink& sink, const DumpLayer& layer, DumpTensor tensor,
                   const std::vector<std::byte>& values) const {
    size_t begin = 0;
    for (size_t s = 0; s < sequences.size(); ++s) {
      const size_t bytes = sequences[s].size() * static_cast<size_t>(layer.row_bytes(tensor));
      sink.WriteSequence(tensor, static_cast<int64_t>(s), std::span(values).subspan(begin, bytes));
      begin += bytes;
    }
  }

  void WriteReaders(DumpSink& sink, int index) const {
    const DumpLayer source = Layer(index);
    for (const CacheReader& reader : source.readers) {
      const DumpLayer own = source.Reader(reader);
      sink.BeginReader(source, reader);
      for (const DumpTensor tensor : kReaderTensors)
        WriteTensor(sink, own, tensor, Values(reader.layer_id, tensor, own));
    }
  }

  void Write(const std::filesystem::path& path) const {
    DumpWriter writer(path, sequences,
                      {.deflate_level = deflate_level,
                       .score_rows = scores ? score_rows : std::vector<int64_t>{},
                       .logits_width = logits_width});
    for (int index = 0; index < num_layers; ++index) {
      WriteLayer(writer, index);
      if (!scores) continue;
      writer.WriteLse(0, std::vector<float>(kTokens * 4, 0.5f));
      writer.WriteScores(0, std::vector<float>(score_rows.size() * 4 * kLongest, 0.25f));
    }
    for (int index = 0; index < num_layers; ++index) WriteReaders(writer, index);
    if (logits_width > 0)
      writer.WriteLogits(0, std::vector<float>(static_cast<size_t>(kTokens * logits_width), 2));
    writer.Commit(Origin());
  }
};

}  // namespace oscar
