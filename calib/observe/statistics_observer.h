// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams one layer's attention into float64 sums on the compute device and keeps what the layer's
// fit needs afterwards: keys and values of all tokens, and sampled queries of the held-out rows. No
// host synchronization until its sums are read back. Trap: a document's sums are taken in token
// chunks of fixed size, those of documents added as DocumentSums has it; changing either changes
// the last bits of an artifact.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "calib/held_out.h"
#include "calib/moments/layer_moments.h"
#include "calib/observe/document_sums.h"
#include "capture/model/run/layer_loop.h"
#include "linalg/cache_windows.h"

namespace oscar {

// Held-out query rows of one sequence.
struct HeldOutQueries {
  int64_t sequence = 0;
  at::Tensor rows;     // [num_rows] int64, token positions, device
  at::Tensor queries;  // [num_rows, num_q_heads, d] compute dtype, device
  at::Tensor q_pe;     // [num_rows, num_q_heads, rope_dim] of latent attention; else undefined
};

// Everything observed of one layer. Tensors stay on the compute device.
struct ObservedLayer {
  LayerMoments fit;                // rows the split fits to
  LayerMoments held_out;           // the others; no tokens where nothing is held out
  LayerMoments first_half;         // of the first half of `fit`, but for the values' own sums
  std::vector<at::Tensor> keys;    // per sequence [tokens, num_kv_heads, d] compute dtype
  std::vector<at::Tensor> values;  // per sequence [tokens, num_kv_heads, dv]
  std::vector<at::Tensor> k_pe;    // per sequence [tokens, rope_dim] of latent attention; or empty
  at::Tensor w_uv;  // of latent attention, whose outputs are these times W_UV: [num_q_heads,
                    // expanded v_head_dim, rank]; else undefined
  std::vector<HeldOutQueries> queries;
  std::vector<at::Tensor> last_queries;  // per sequence, where they are kept
};

// The sums of a document, one float64 tensor: [num_kv_heads, d, d] query, [num_kv_heads, dv, dv]
// attention output, and of attended keys (LayerMoments) [num_kv_heads, d, d], [num_kv_heads, d] and
// [num_kv_heads] (all that a reader of another layer adds); then [num_kv_heads, d, d] key,
// [num_kv_heads, dv, dv] value and [num_kv_heads, d] keys.
struct SumsLayout {
  int64_t num_kv_heads = 0, d = 0, dv = 0;

  int64_t of_queries() const { return num_kv_heads * (2 * d * d + dv * dv + d + 1); }
  int64_t of_all() const { return of_queries() + num_kv_heads * (d * d + dv * dv + d); }
};

// The point that halves the fitted queries that count: a position in the fitted tokens, at the end
// of a chunk.
struct HalfPoint {
  int64_t document = -1;  // none: nothing is fitted to
  int64_t rows = 0;       // of that document
  int64_t tokens = 0;     // up to there
  int64_t queries = 0;    // of these, whose queries count
};
HalfPoint HalfPointOf(const HeldOutSplit& split);

struct LayerSums {
  DocumentSums fit, held_out;
  DocumentSums first_half;  // of `fit`, up to the half point
};

// A layer whose sums have not been read back: the work for them may still be running.
struct LayerOnDevice {
  LayerSums sums;
  std::vector<LayerSums> readers;  // of_queries() of layers that read this one's keys and values
  int64_t fit_tokens = 0, held_out_tokens = 0, half_tokens = 0;
  int64_t fit_queries = 0, held_out_queries = 0, half_queries = 0;  // that count
  ObservedLayer layer;                                              // all but its moments

  void SetCounts(const HeldOutSplit& split, const HalfPoint& half);

  // Says that a thread with another stream will read it and drop it.
  void RecordStream(c10::Stream stream) const;
};

// Positions of the NumKeptRows query rows that are kept of one sequence, ascending, evenly spaced
// among those that count.
at::Tensor KeptRows(const HeldOutSplit& split, size_t sequence, int64_t tokens, int64_t error_rows,
                    at::Device device);  // [n] int64, on `device`

// Bytes of temporaries that the observer holds at a time, where the longest sequence has `longest`
// tokens.
uint64_t ObservingMemory(const LayerSpec& layer, int64_t longest);

// Waits for the sums, on the current stream.
ObservedLayer ReadBack(LayerOnDevice observed, const LayerSpec& spec);

class StatisticsObserver : public LayerObserver {
 public:
  // `error_rows`: query rows kept per sequence with held-out rows, evenly spaced, the last row
  // among them. `last_queries`: of every sequence, for refinement. The sequences that are seen
  // begin with number `first_sequence` of those that `split` is of. `windows`: the keys that
  // queries read exactly, which are not among the attended ones.
  StatisticsObserver(HeldOutSplit split, int64_t error_rows, int64_t last_queries = 0,
                     int64_t first_sequence = 0, CacheWindows windows = {});

  void OnLayerBegin(const LayerSpec& layer) override;
  void OnAttention(const AttentionView& view) override;
  void OnSharedAttention(const AttentionView& view) override;  // of a layer that is held

  // Hand over the finished layer: as it is, or with its sums read back (the layer's one
  // synchronization).
  LayerOnDevice TakeOnDevice() { return std::exchange(observed_, {}); }
  ObservedLayer TakeLayer(const LayerSpec& layer) { return ReadBack(TakeOnDevice(), layer); }
  // The same for a layer that other layers may have read since.
  LayerOnDevice TakeOnDevice(size_t layer_index);

  // Sets the finished layer aside, because other layers will read its keys and values: their
  // queries and outputs join its sums, which become means over all layers that read.
  void Hold(size_t layer_index);

 private:
  void AddRows(LayerSums& sums, const AttentionView& view, bool of_reader) const;

  HeldOutSplit split_;
  int64_t error_rows_, last_queries_, first_sequence_;
  CacheWindows windows_;
  HalfPoint half_;
  LayerOnDevice observed_;
  std::map<size_t, LayerOnDevice> held_;  // by layer index
};

// Σ w vᵀv and Σ w with w = k C_Q kᵀ over rows [0, rows[i]) of each sequence, into
// `moments.diagonal`: the second sweep, which needs the finished query covariance of `moments`.
void AddDiagonalTarget(const std::vector<at::Tensor>& keys, const std::vector<at::Tensor>& values,
                       const std::vector<int64_t>& rows, LayerMoments& moments);

}  // namespace oscar
