// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The HDF5 dump, defined once. External tools read it with h5py, so names never change:
//
//   /                    attributes: format = "oscar-dump", format_version, num_layers, model,
//                        model_digest, tokenizer_digest, data_digest, tool_version
//   /input_ids           [T] int32, all sequences concatenated
//   /sequence_offsets    [n+1] int64, in tokens: sequence i is [offsets[i], offsets[i+1])
//   /counted             [T] uint8, 0 if statistics and scores exclude a token's query (loss_mask,
//                        labels); exists only if they exclude some
//   /sequence_domains    [n] int32, a number for the kind of text of each sequence; exists only if
//                        there are several kinds
//   /layer/<id>/q        [T, num_q_heads, head_dim]     after QK-norm and rotary embedding
//   /layer/<id>/k        [T, num_kv_heads, head_dim]    after QK-norm and rotary embedding
//   /layer/<id>/v        [T, num_kv_heads, v_head_dim]  after its projection
//   /layer/<id>/attn_out [T, num_q_heads, v_head_dim]   before an output gate and before o_proj
//   /layer/<id>/lse      [T, num_q_heads] float32: natural log of the sum of exp of a row's logits
//   /layer/<id>/score_rows [R] int64, token indices, ascending
//   /layer/<id>/scores   [R, num_q_heads, longest sequence] float32: softmax rows; column j is
//                        token j of the row's own sequence; zero beyond the row's causal reach
//   /layer/<id>/sinks    [num_q_heads] float32: an additional logit of each softmax row, without a
//                        value; exists only if the layer has sinks
//   /logits              [T, vocab] float32
//   /layer/<id>/read_by/<reader>/q, attn_out: q and attn_out of each layer that has no keys and
//                        values and reads those of layer <id>; [T, the reader's num_q_heads, ..]
//   layer attributes: kind ("gqa" or "mla"), num_q_heads, num_kv_heads, head_dim, v_head_dim,
//                     scale, window (0: none), softcap (0: none); and facts about the model that a
//                     fit needs: rope (JSON: all settings of the embedding in q and k), qk_norm (0
//                     or 1), not_foldable (why scales cannot be folded into the weights of this
//                     layer; "" if they can)
//
// Layers with latent attention (kind "mla") also have the attributes latent_rank and rope_dim, and
// these datasets. Their q, k and v are the expanded heads.
//
//   /layer/<id>/c_kv     [T, latent_rank]  the cached latent, after its norm
//   /layer/<id>/k_pe     [T, rope_dim]     the cached position key, after rotary embedding
//   /layer/<id>/kv_b     [num_q_heads, head_dim - rope_dim + v_head_dim, latent_rank]: the weights
//                        that expand the latent; for each head, those of keys and then of values
//
// A dump by several ranks has virtual datasets, except for input_ids, sequence_offsets, counted,
// sequence_domains, score_rows and sinks. The rows of a virtual dataset come from the same dataset
// in files next to this one, each a dump of some sequences.
//
// q, k, v, attn_out, c_kv, k_pe and kv_b have one type per layer: float32, float16, or bfloat16 as
// uint16 with the attribute dtype = "bf16" on each dataset. lse, score_rows and scores exist
// together or not at all; logits are optional. Trap: give the format a new version before adding an
// attribute or dataset here, because older programs refuse unknown objects.
//
// Version 2 is refused: it had no num_layers, so a missing layer would go unnoticed. Version 1 is
// refused: it had no read_by, rope, qk_norm and not_foldable, and may lack the queries of layers
// that read another layer's keys and values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "capture/dump/attention_dump.h"

namespace oscar::dump_format {

inline constexpr std::string_view kFormat = "oscar-dump";
inline constexpr int64_t kVersion = 3;

// Attributes of the root.
inline constexpr std::string_view kFormatAttribute = "format";
inline constexpr std::string_view kVersionAttribute = "format_version";
inline constexpr std::string_view kNumLayers = "num_layers";  // number of children of /layer
inline constexpr std::string_view kModel = "model";
inline constexpr std::string_view kModelDigest = "model_digest";
inline constexpr std::string_view kTokenizerDigest = "tokenizer_digest";
inline constexpr std::string_view kDataDigest = "data_digest";
inline constexpr std::string_view kToolVersion = "tool_version";

// Children of the root.
inline constexpr std::string_view kInputIds = "input_ids";
inline constexpr std::string_view kSequenceOffsets = "sequence_offsets";
inline constexpr std::string_view kCounted = "counted";
inline constexpr std::string_view kDomains = "sequence_domains";
inline constexpr std::string_view kLayers = "layer";
inline constexpr std::string_view kLogits = "logits";

// Attributes of a layer.
inline constexpr std::string_view kKind = "kind";
inline constexpr std::string_view kKindGqa = "gqa";  // includes multi-head and multi-query
inline constexpr std::string_view kKindMla = "mla";
inline constexpr std::string_view kLatentRank = "latent_rank";
inline constexpr std::string_view kRopeDim = "rope_dim";
inline constexpr std::string_view kNumQHeads = "num_q_heads";
inline constexpr std::string_view kNumKvHeads = "num_kv_heads";
inline constexpr std::string_view kHeadDim = "head_dim";
inline constexpr std::string_view kVHeadDim = "v_head_dim";
inline constexpr std::string_view kScale = "scale";
inline constexpr std::string_view kWindow = "window";
inline constexpr std::string_view kSoftcap = "softcap";
inline constexpr std::string_view kRope = "rope";
inline constexpr std::string_view kQkNorm = "qk_norm";
inline constexpr std::string_view kNotFoldable = "not_foldable";

// Group in a layer that others read.
inline constexpr std::string_view kReadBy = "read_by";

// Datasets of a layer in addition to those of DumpTensorName.
inline constexpr std::string_view kLse = "lse";
inline constexpr std::string_view kScoreRows = "score_rows";
inline constexpr std::string_view kScores = "scores";
inline constexpr std::string_view kSinks = "sinks";
inline constexpr std::string_view kKvB = "kv_b";

// Attribute of a uint16 dataset.
inline constexpr std::string_view kDtype = "dtype";
inline constexpr std::string_view kDtypeBf16 = "bf16";

std::string LayerPath(int layer_id);                            // "/layer/3"
std::string LayerPath(int layer_id, std::string_view dataset);  // "/layer/3/q"
std::string ReaderPath(int layer_id, int reader_id);            // "/layer/3/read_by/5"

// Bytes of values, without compression or HDF5's overhead (a few KB per dataset).
constexpr int64_t ScoreBytes(int64_t rows, int64_t num_q_heads, int64_t longest_sequence) {
  return rows * num_q_heads * longest_sequence * 4;
}
constexpr int64_t LseBytes(int64_t tokens, int64_t num_q_heads) { return tokens * num_q_heads * 4; }
// Bytes of all tensors of a layer and of its readers.
int64_t TensorBytes(const DumpLayer& layer, int64_t tokens);

}  // namespace oscar::dump_format
