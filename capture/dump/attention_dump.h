// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The content of an attention dump in any format. AttentionDump reads, DumpSink writes. Values are
// bytes in the dump's own type (BF16, F16 or F32, little-endian); nothing here converts them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/dtype.h"

namespace oscar {

// Tensors with values per token and head, as they enter or leave attention.
enum class DumpTensor { kQ, kK, kV, kAttnOut, kCKv, kKPe };
// The tensors that every layer has. The others belong to latent attention and have no heads.
inline constexpr std::array kDumpTensors = {DumpTensor::kQ, DumpTensor::kK, DumpTensor::kV,
                                            DumpTensor::kAttnOut};
std::string_view DumpTensorName(DumpTensor tensor);  // "q", "k", "v", "attn_out", "c_kv", "k_pe"

// A layer that reads another layer's keys and values. Its queries and outputs are dumped with the
// source layer.
struct CacheReader {
  int layer_id = 0;
  int64_t num_q_heads = 0;
  bool operator==(const CacheReader&) const = default;
};

// Facts about the model that a fit needs in addition to the geometry of attention.
struct DumpModelFacts {
  std::string rope;          // capture/model/spec/rope_json.h
  bool qk_norm = false;      // whether queries and keys are normed
  std::string not_foldable;  // why nothing can be folded into this layer's weights; "" if possible
  bool operator==(const DumpModelFacts&) const = default;
};

struct DumpLayer {
  int layer_id = 0;  // layer number in the checkpoint
  int64_t num_q_heads = 0, num_kv_heads = 0;
  int64_t head_dim = 0, v_head_dim = 0;
  double scale = 0;               // factor on q·k
  std::optional<int64_t> window;  // query i sees keys i-W+1 .. i; absent: 0 .. i
  double softcap = 0;             // logits become softcap * tanh(logits / softcap); 0: no softcap
  std::vector<float> sinks = {};  // [num_q_heads]: an additional logit per row; empty: none
  // Sizes of the latent c_kv and of the position key k_pe; all heads share both. Both are 0 if the
  // layer does not use latent attention. If it does, q, k and v are the expanded heads.
  int64_t latent_rank = 0, rope_dim = 0;
  DType dtype = DType::kF32;                 // type of q, k, v, attn_out, c_kv, k_pe
  std::optional<DumpModelFacts> facts = {};  // absent: not in this format
  std::vector<CacheReader> readers = {};     // ids ascending

  bool latent() const { return latent_rank > 0; }
  std::vector<DumpTensor> tensors() const;  // the tensors of such a layer
  int64_t heads(DumpTensor tensor) const;   // num_q_heads, num_kv_heads or 1
  int64_t dim(DumpTensor tensor) const;     // head_dim, v_head_dim, latent_rank or rope_dim
  // [num_tokens, heads, dim], except [num_tokens, dim] for c_kv and k_pe.
  std::vector<int64_t> shape(DumpTensor tensor, int64_t num_tokens) const;
  int64_t row_bytes(DumpTensor tensor) const;  // per token
  // For latent attention: the weights that expand the latent, per head [W_UK | W_UV].
  std::vector<int64_t> kv_b_shape() const;  // [num_q_heads, nope_dim + v_head_dim, latent_rank]
  int64_t kv_b_bytes() const;
  // The shapes of q and attn_out of a layer that reads this layer's keys and values.
  DumpLayer Reader(const CacheReader& reader) const;
  bool operator==(const DumpLayer&) const = default;
};
// The tensors that are dumped for a reader.
inline constexpr std::array kReaderTensors = {DumpTensor::kQ, DumpTensor::kAttnOut};

// Throws InputError naming `what` unless attention can have this geometry: positive counts within
// sensible bounds, query heads a multiple of KV heads, a scale above 0, and a type of 16 or 32
// bits.
void CheckDumpLayer(const DumpLayer& layer, const std::string& what);

// The origin of a dump; members are "" if its format does not store them.
struct DumpOrigin {
  std::string format;            // "oscar-dump 3" or "upstream"
  std::string model;             // "Qwen/Qwen3-8B@<revision>"
  std::string model_digest;      // SHA-256, see calib/run/provenance.h
  std::string tokenizer_digest;  // SHA-256 of tokenizer.json
  std::string data_digest;       // SHA-256 of the token ids and their boundaries
  std::string tool_version;
};

class AttentionDump {
 public:
  virtual ~AttentionDump() = default;
  virtual const DumpOrigin& origin() const = 0;
  virtual const std::string& name() const = 0;                       // path, for error messages
  virtual const std::vector<DumpLayer>& layers() const = 0;          // ids ascending
  virtual const std::vector<int64_t>& sequence_lengths() const = 0;  // tokens
  virtual bool has(DumpTensor tensor) const = 0;  // in every layer; q, k and v always exist
  // [T] ids of all sequences, concatenated; empty if the format does not store them.
  virtual std::span<const int32_t> token_ids() const { return {}; }
  // [T] 0 if statistics and scores exclude the token's query (loss_mask, labels); empty if they
  // exclude none.
  virtual std::span<const uint8_t> counted() const { return {}; }
  // One number per sequence, as in DataSet::domains.
  virtual std::span<const int32_t> domains() const { return {}; }

  // Reads whole tokens into `out` [tokens, heads, dim]. `first_token` counts from the start of all
  // sequences concatenated. Throws InputError naming file, layer and token if a value is NaN or
  // infinite, or if the file is damaged.
  virtual void ReadRows(size_t layer_index, DumpTensor tensor, int64_t first_token,
                        std::span<std::byte> out) const = 0;
  // Reads like ReadRows, for one of the layer's readers; `tensor` is one of kReaderTensors.
  virtual void ReadReaderRows(size_t layer_index, size_t reader, DumpTensor tensor,
                              int64_t first_token, std::span<std::byte> out) const;
  // Reads the weights that expand the latent of a layer with latent attention. `out` has
  // kv_b_bytes() bytes. Throws like ReadRows.
  virtual void ReadKvB(size_t layer_index, std::span<std::byte> out) const;
};

// A dump that is being written: one layer after another, and whole sequences in any order within a
// layer.
class DumpSink {
 public:
  virtual ~DumpSink() = default;
  virtual bool wants(DumpTensor tensor) const = 0;  // other tensors need not be written
  virtual void BeginLayer(const DumpLayer& layer) = 0;
  // Writes one whole sequence. `values` [tokens, heads, dim] in the layer's dtype.
  virtual void WriteSequence(DumpTensor tensor, int64_t sequence,
                             std::span<const std::byte> values) = 0;
  // Writes the weights that expand the latent, kv_b_bytes() bytes. Called once per layer with
  // latent attention.
  virtual void WriteKvB(std::span<const std::byte> /*values*/) {}
  virtual void EndLayer() = 0;
  // Begins a reader instead of a layer, after its source layer. Sequences of kReaderTensors follow.
  virtual void BeginReader(const DumpLayer& source, const CacheReader& reader) = 0;
};

// Returns the position of the first NaN or infinity among BF16, F16 or F32 values, or nothing.
std::optional<size_t> FirstNotFinite(DType dtype, std::span<const std::byte> values);

}  // namespace oscar
