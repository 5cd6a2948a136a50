// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What a dump of attention holds, whatever its format, and the two directions: AttentionDump is
// read, DumpSink is written. Values are bytes in the dump's own type (BF16, F16 or F32,
// little-endian); nothing here converts.
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

// Per token and head, as they enter (or leave) attention.
enum class DumpTensor { kQ, kK, kV, kAttnOut, kCKv, kKPe };
// Of every layer; the others are of latent attention, and have no heads.
inline constexpr std::array kDumpTensors = {DumpTensor::kQ, DumpTensor::kK, DumpTensor::kV,
                                            DumpTensor::kAttnOut};
std::string_view DumpTensorName(DumpTensor tensor);  // "q", "k", "v", "attn_out", "c_kv", "k_pe"

// A layer that reads the keys and values of another: its queries and outputs are dumped beside
// those of the layer that has them.
struct CacheReader {
  int layer_id = 0;
  int64_t num_q_heads = 0;
  bool operator==(const CacheReader&) const = default;
};

// What a fit asks a model beside the geometry of its attention.
struct DumpModelFacts {
  std::string rope;          // capture/model/rope_json.h
  bool qk_norm = false;      // queries and keys are normed
  std::string not_foldable;  // why nothing can be folded into this layer's weights; "": it can
  bool operator==(const DumpModelFacts&) const = default;
};

struct DumpLayer {
  int layer_id = 0;  // the checkpoint's own number
  int64_t num_q_heads = 0, num_kv_heads = 0;
  int64_t head_dim = 0, v_head_dim = 0;
  double scale = 0;               // factor on q·k
  std::optional<int64_t> window;  // query i sees keys i-W+1 .. i; absent: 0 .. i
  double softcap = 0;             // logits become softcap * tanh(logits / softcap); 0: they do not
  std::vector<float> sinks = {};  // [num_q_heads]: one more logit of each row; empty: none
  // Of latent attention, whose q, k, v are expanded heads: the latent c_kv and the key with
  // position k_pe that all heads share. 0: it is none.
  int64_t latent_rank = 0, rope_dim = 0;
  DType dtype = DType::kF32;                 // of q, k, v, attn_out, c_kv, k_pe
  std::optional<DumpModelFacts> facts = {};  // absent: the format does not say
  std::vector<CacheReader> readers = {};     // ids ascending

  bool latent() const { return latent_rank > 0; }
  std::vector<DumpTensor> tensors() const;  // that such a layer has
  int64_t heads(DumpTensor tensor) const;   // num_q_heads, num_kv_heads or 1
  int64_t dim(DumpTensor tensor) const;     // head_dim, v_head_dim, latent_rank or rope_dim
  // [num_tokens, heads, dim], but [num_tokens, dim] of c_kv and k_pe.
  std::vector<int64_t> shape(DumpTensor tensor, int64_t num_tokens) const;
  int64_t row_bytes(DumpTensor tensor) const;  // of one token
  // Of latent attention: the weights that expand the latent, per head [W_UK | W_UV].
  std::vector<int64_t> kv_b_shape() const;  // [num_q_heads, nope_dim + v_head_dim, latent_rank]
  int64_t kv_b_bytes() const;
  // Of one that reads its keys and values: q and attn_out have these shapes.
  DumpLayer Reader(const CacheReader& reader) const;
  bool operator==(const DumpLayer&) const = default;
};
// What is dumped of such a reader.
inline constexpr std::array kReaderTensors = {DumpTensor::kQ, DumpTensor::kAttnOut};

// Throws InputError naming `what` unless the geometry is one that attention can have: counts
// positive and in sensible bounds, query heads a multiple of KV heads, a scale above 0, 16 or 32
// bits.
void CheckDumpLayer(const DumpLayer& layer, const std::string& what);

// Where a dump comes from; "" where its format does not say.
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
  virtual const std::string& name() const = 0;                       // path, for messages
  virtual const std::vector<DumpLayer>& layers() const = 0;          // ids ascending
  virtual const std::vector<int64_t>& sequence_lengths() const = 0;  // tokens
  virtual bool has(DumpTensor tensor) const = 0;  // of every layer; q, k and v always are
  // [T] of all sequences, concatenated; empty where the format does not hold them.
  virtual std::span<const int32_t> token_ids() const { return {}; }
  // [T] 0 where the query of a token does not count (loss_mask, labels); empty: all do.
  virtual std::span<const uint8_t> counted() const { return {}; }
  // Per sequence, as DataSet::domains has it.
  virtual std::span<const int32_t> domains() const { return {}; }

  // Whole tokens, beginning at `first_token` of the concatenation of all sequences.
  // `out` [tokens, heads, dim]. Throws InputError naming file, layer and token where a value is NaN
  // or infinite or the file is damaged.
  virtual void ReadRows(size_t layer_index, DumpTensor tensor, int64_t first_token,
                        std::span<std::byte> out) const = 0;
  // The same of one of the layer's readers, of kReaderTensors.
  virtual void ReadReaderRows(size_t layer_index, size_t reader, DumpTensor tensor,
                              int64_t first_token, std::span<std::byte> out) const;
  // Of a layer with latent attention: `out` is kv_b_bytes() long. Throws the same.
  virtual void ReadKvB(size_t layer_index, std::span<std::byte> out) const;
};

// A dump being written: layers one after another, tokens of a layer in any order of whole
// sequences.
class DumpSink {
 public:
  virtual ~DumpSink() = default;
  virtual bool wants(DumpTensor tensor) const = 0;  // the others need not be written
  virtual void BeginLayer(const DumpLayer& layer) = 0;
  // One whole sequence. `values` [tokens, heads, dim] in the layer's dtype.
  virtual void WriteSequence(DumpTensor tensor, int64_t sequence,
                             std::span<const std::byte> values) = 0;
  // Of a layer with latent attention, once: kv_b_bytes().
  virtual void WriteKvB(std::span<const std::byte> /*values*/) {}
  virtual void EndLayer() = 0;
  // Instead of a layer, after the one that it reads: sequences of kReaderTensors follow.
  virtual void BeginReader(const DumpLayer& source, const CacheReader& reader) = 0;
};

// The position of the first NaN or infinity among values of BF16, F16 or F32, or nothing.
std::optional<size_t> FirstNotFinite(DType dtype, std::span<const std::byte> values);

}  // namespace oscar
