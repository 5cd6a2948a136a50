// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A weight of a model as stored in a GGUF: the rows of stored tensors that make up the dense tensor
// of the Hugging Face model, and the converter's changes that must be undone (llama.cpp,
// convert_hf_to_gguf.py). Weights decode to the same float32 values as with the Python package
// gguf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/safetensors.h"  // TensorInfo

namespace oscar {

// How the converter changed each value.
enum class GgufChange {
  kNone,
  kMinusOne,    // w of a (1 + w) norm, stored as 1 + w
  kLogOfMinus,  // A_log, stored as -exp(A_log)
};

struct GgufWeight {
  // A byte range of one stored tensor: `rows` rows of `columns` values for each matrix.
  struct Part {
    std::string tensor;  // "blk.0.attn_q.weight"
    const GgmlType* type = nullptr;
    uint64_t begin = 0, size = 0;  // bytes inside the stored tensor
    int64_t rows = 0;              // per matrix, as stored
    int64_t columns = 0;
    int64_t heads = 0;  // if not 0, heads are transposed: stored [heads, rows / heads, columns],
                        // dense [heads, columns, rows / heads] (DeepSeek's W_UK)
    int64_t dense_rows() const { return heads == 0 ? rows : heads * columns; }
    int64_t dense_columns() const { return heads == 0 ? columns : rows / heads; }
  };

  TensorInfo info;  // shape of the dense tensor; dtype of plain weights, otherwise U8
  std::vector<Part> parts;
  int64_t matrices = 1;               // number of matrices [rows, columns] in the dense tensor
  bool transposed = false;            // the dense matrices are [columns, rows] (gpt-oss's experts)
  std::vector<int64_t> row_order;     // row r is row row_order[r] among all parts; empty: identity
  std::vector<int64_t> column_order;  // likewise for columns
  GgufChange change = GgufChange::kNone;

  // Whether there is only one part, and its bytes equal the dense tensor.
  bool plain() const;
};

}  // namespace oscar
