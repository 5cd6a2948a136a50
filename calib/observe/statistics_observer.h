// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams one layer's attention into float64 sums on the compute device. Also keeps what the
// layer's fit needs afterwards: keys and values of all tokens, and sampled queries of the held-out
// rows. The host does not synchronize until the sums are read back. Trap: a document is summed in
// chunks of a fixed number of tokens, and documents are added in the order of DocumentSums.
// Changing either changes the last bits of an artifact.
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
  at::Tensor q_pe;     // [num_rows, num_q_heads, rope_dim] for latent attention, or undefined
};

// Everything observed in one layer. Tensors stay on the compute device.
struct ObservedLayer {
  LayerMoments fit;                // rows that fits use
  LayerMoments held_out;           // the other rows; no tokens if nothing is held out
  LayerMoments first_half;         // first half of `fit`, without the values' own sums
  std::vector<at::Tensor> keys;    // per sequence [tokens, num_kv_heads, d] compute dtype
  std::vector<at::Tensor> values;  // per sequence [tokens, num_kv_heads, dv]
  std::vector<at::Tensor> k_pe;    // per sequence [tokens, rope_dim] for latent attention, or empty
  at::Tensor w_uv;  // for latent attention, where W_UV maps latent outputs to outputs:
                    // [num_q_heads, expanded v_head_dim, rank]; otherwise undefined
  std::vector<HeldOutQueries> queries;
  std::vector<at::Tensor> last_queries;  // per sequence, if they are kept
};

// The sums over a document in one float64 tensor: the LayerMoments members query, attention_output,
// attended_key, attended_key_sum, attended_key_weight, key, value and key_sum, in this order.
// Layers that read another layer's cache only add the first five.
struct SumsLayout {
  int64_t num_kv_heads = 0, d = 0, dv = 0;

  int64_t of_queries() const { return num_kv_heads * (2 * d * d + dv * dv + d + 1); }
  int64_t of_all() const { return of_queries() + num_kv_heads * (d * d + dv * dv + d); }
};

// The point that divides the fitted queries that count into two halves. It is at the end of a chunk
// of fitted tokens.
struct HalfPoint {
  int64_t document = -1;  // none: no fitted rows
  int64_t rows = 0;       // rows of `document` before the point
  int64_t tokens = 0;     // all tokens before the point
  int64_t queries = 0;    // number of those tokens whose queries count
};
HalfPoint HalfPointOf(const HeldOutSplit& split);

struct LayerSums {
  DocumentSums fit, held_out;
  DocumentSums first_half;  // sum of `fit` up to the half point
};

// A layer whose sums have not been read back. Kernels that compute them may still be running.
struct LayerOnDevice {
  LayerSums sums;
  std::vector<LayerSums> readers;  // of_queries() of the layers that read this one's cache
  int64_t fit_tokens = 0, held_out_tokens = 0, half_tokens = 0;
  int64_t fit_queries = 0, held_out_queries = 0, half_queries = 0;  // only queries that count
  ObservedLayer layer;                                              // everything except its moments

  void SetCounts(const HeldOutSplit& split, const HalfPoint& half);

  // Registers a stream on which another thread will read and free this.
  void RecordStream(c10::Stream stream) const;
};

// Returns the positions of the query rows that are kept for one sequence (NumKeptRows): ascending,
// and evenly spaced among the rows that count.
at::Tensor KeptRows(const HeldOutSplit& split, size_t sequence, int64_t tokens, int64_t error_rows,
                    at::Device device);  // [n] int64, on `device`

// Returns the bytes of temporaries that the observer holds at once, if the longest sequence has
// `longest` tokens.
uint64_t ObservingMemory(const LayerSpec& layer, int64_t longest);

// Waits for the sums on the current stream.
ObservedLayer ReadBack(LayerOnDevice observed, const LayerSpec& spec);

class StatisticsObserver : public LayerObserver {
 public:
  // `error_rows`: most query rows kept of each sequence with held-out rows, evenly spaced,
  // including the last row.
  // `last_queries`: number of last queries kept of every sequence, for refinement.
  // `first_sequence`: index in `split` of the first sequence that is observed.
  // `windows`: the keys in these windows are read exactly, so they are not attended keys.
  StatisticsObserver(HeldOutSplit split, int64_t error_rows, int64_t last_queries = 0,
                     int64_t first_sequence = 0, CacheWindows windows = {});

  void OnLayerBegin(const LayerSpec& layer) override;
  void OnAttention(const AttentionView& view) override;
  void OnSharedAttention(const AttentionView& view) override;  // for a layer that is held

  // Hand over the finished layer: as it is, or with its sums read back (its only synchronization).
  LayerOnDevice TakeOnDevice() { return std::exchange(observed_, {}); }
  ObservedLayer TakeLayer(const LayerSpec& layer) { return ReadBack(TakeOnDevice(), layer); }
  // The same for a layer that other layers may have read in the meantime.
  LayerOnDevice TakeOnDevice(size_t layer_index);

  // Sets the finished layer aside, because other layers will read its keys and values. The queries
  // and outputs of those layers join its sums, which become means over all of them.
  void Hold(size_t layer_index);

 private:
  void AddRows(LayerSums& sums, const AttentionView& view, bool of_reader) const;

  HeldOutSplit split_;
  int64_t error_rows_, last_queries_, first_sequence_;
  CacheWindows windows_;
  HalfPoint half_;
  LayerOnDevice observed_;
  std::map<size_t, LayerOnDevice> held_;  // keyed by layer index
};

// Adds Σ w vᵀv and Σ w, with w = k C_Q kᵀ, over rows [0, rows[i]) of each sequence to
// `moments.diagonal`. This is a second sweep, because it needs the final query covariance in
// `moments`.
void AddDiagonalTarget(const std::vector<at::Tensor>& keys, const std::vector<at::Tensor>& values,
                       const std::vector<int64_t>& rows, LayerMoments& moments);

}  // namespace oscar
