// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The dump directory that upstream's patched server writes and its fitter, compute_kv_rotation.py,
// reads:
//
//   layer_<id>/q/<chunk>.pt         [t, num_q_heads, head_dim], a bare tensor in the model's dtype
//   layer_<id>/k/<chunk>.pt, v/...  [t, num_kv_heads, head_dim]
//   layer_<id>/seq_lens/<chunk>.pt  [n] int32: token counts of the chunk's n sequences, in order
//
// Chunks are numbered from 0. Chunk 0 is a 6-token warm-up of the server, which the fitter skips.
// So a directory made for the fitter must have such a chunk.
//
// The token budget of a dump may cut off the end of its last sequence. A dump names neither its
// model nor the scale or window of its attention. If the server processed a long prompt in pieces,
// each piece looks like a sequence. Sources: upstream's triton_backend.py forward_extend and
// compute_kv_rotation.py load_tensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/dump/attention_dump.h"
#include "capture/files/atomic_file.h"

namespace oscar {

struct UpstreamDumpOptions {
  bool skip_warmup = true;        // leaves out chunk 0, as upstream's fitter does
  std::optional<double> scale;    // factor on q·k; absent: 1 / sqrt(head_dim)
  bool allow_layer_gaps = false;  // allows layer ids that are not evenly spaced
};

// Reads such a directory; entries other than layers are ignored. The constructor reads all seq_lens
// and the first and last chunk of every layer. Other files are checked when their rows are read.
//
// Throws InputError naming the file: for missing layers, sides or chunks, shapes that do not fit,
// layers with different sequences, and NaN or infinite values. Also for KV heads that are copies of
// each other, which a server makes if its tensor parallelism exceeds the number of KV heads.
class UpstreamDump : public AttentionDump {
 public:
  UpstreamDump(const std::filesystem::path& directory, const UpstreamDumpOptions& options);

  const DumpOrigin& origin() const override { return origin_; }
  const std::string& name() const override { return name_; }
  const std::vector<DumpLayer>& layers() const override { return layers_; }
  const std::vector<int64_t>& sequence_lengths() const override { return lengths_; }
  bool has(DumpTensor tensor) const override { return tensor < DumpTensor::kAttnOut; }
  void ReadRows(size_t layer_index, DumpTensor tensor, int64_t first_token,
                std::span<std::byte> out) const override;
  int64_t skipped_tokens() const { return skipped_tokens_; }  // tokens of the warm-up

 private:
  struct Chunk {
    int64_t number = 0;
    int64_t first_token = 0, num_tokens = 0;
  };
  // The values of one file. They are kept, because many sequences lie in the same chunk.
  struct Loaded {
    std::filesystem::path path;
    DType dtype{};
    std::vector<int64_t> shape;
    std::vector<std::byte> values;
  };
  std::filesystem::path FilePath(int layer_id, std::string_view side, int64_t chunk) const;
  const Loaded& Load(int layer_id, DumpTensor tensor, int64_t chunk) const;
  std::vector<int> LayerIds(bool allow_gaps) const;
  std::vector<int64_t> ChunkNumbers(int layer_id) const;
  std::vector<std::vector<int64_t>> SequenceLengths(int layer_id,
                                                    const std::vector<int64_t>& chunks) const;
  DumpLayer Geometry(int layer_id, int64_t chunk, std::optional<double> scale) const;

  std::filesystem::path directory_;
  std::string name_;
  DumpOrigin origin_;
  std::vector<DumpLayer> layers_;
  std::vector<int64_t> lengths_;
  std::vector<Chunk> chunks_;
  int64_t skipped_tokens_ = 0;
  mutable std::array<Loaded, 3> loaded_;  // by DumpTensor
};

// UpstreamDumpWriter writes such a directory, completely or not at all. Whole sequences are
// gathered into chunks of about kUpstreamChunkTokens tokens. Chunk 0 repeats the first 6 tokens.
// Upstream's fitter skips it, so it sees every token once.
inline constexpr int64_t kUpstreamChunkTokens = 8192, kUpstreamWarmupTokens = 6;

// Throws InputError for latent attention, and for a layer whose keys and values other layers also
// read. The format can hold neither latents nor the queries of those other layers.
void CheckUpstreamHolds(const DumpLayer& layer);

class UpstreamDumpWriter : public DumpSink {
 public:
  // Throws InputError if `directory` exists.
  UpstreamDumpWriter(const std::filesystem::path& directory, std::vector<int64_t> sequence_lengths);

  bool wants(DumpTensor tensor) const override { return tensor < DumpTensor::kAttnOut; }
  void BeginLayer(const DumpLayer& layer) override;
  void WriteSequence(DumpTensor tensor, int64_t sequence,
                     std::span<const std::byte> values) override;
  void EndLayer() override;
  void BeginReader(const DumpLayer& source, const CacheReader& reader) override;
  void Commit();

 private:
  void WriteValues(DumpTensor tensor, int64_t chunk, std::span<const std::byte> values) const;
  void WriteLengths(int64_t chunk, const std::vector<int32_t>& lengths) const;

  AtomicDirectory directory_;
  std::vector<int64_t> lengths_;
  std::vector<int64_t> chunk_of_;  // chunk of each sequence, counted from 1
  DumpLayer layer_;
  std::array<std::vector<std::byte>, 3> gathered_;  // values of the current chunk, by DumpTensor
};

}  // namespace oscar
