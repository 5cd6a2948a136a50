// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Causal softmax attention of one head over one sequence, in float64 and by tiles of queries, for
// attention statistics and attention-KL. Trap: matrices hold tokens as columns, [dim, tokens]
// column-major, which is the same memory as a row-major [tokens, dim] tensor.
#pragma once

#include <cstdint>

#include "linalg/matrix.h"

namespace oscar {

// The keys that a query sees, and the scaling of its logits.
struct AttentionRule {
  double scale = 0;    // logit = scale * <q, k>; usually 1 / sqrt(head_dim)
  int64_t window = 0;  // keys a query sees, including its own (sliding window); 0: no window
};

// Returns the first key that a query sees; the last is its own.
int64_t FirstVisibleKey(const AttentionRule& rule, int64_t query);

// Queries [first, first + count) of a sequence; their keys lie in [0, first + count).
struct QueryTile {
  int64_t first = 0;  // tokens
  int64_t count = 0;  // tokens
  int64_t num_keys() const { return first + count; }
};

// Return the number of query tiles of a sequence, and one of them.
int64_t NumQueryTiles(int64_t tokens);
QueryTile QueryTileAt(int64_t tile, int64_t tokens);

// Returns the scaled logits [num_keys, count] of a tile. Entries of keys that a query does not see
// are meaningless. queries, keys: [head_dim, tokens].
Matrix TileLogits(const Matrix& queries, const Matrix& keys, const AttentionRule& rule,
                  const QueryTile& tile);

// Turns each column of logits into probabilities, zero for keys that the query does not see.
// Returns the log-sum-exp of each column, [count].
Vector SoftmaxTile(const AttentionRule& rule, const QueryTile& tile, Matrix& logits);

}  // namespace oscar
