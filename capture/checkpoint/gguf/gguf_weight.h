// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A weight of a model as stored in a GGUF: the rows of stored tensors that make up the dense tensor
// of the Hugging Face model, and which changes of the converter are undone (llama.cpp,
// convert_hf_to_gguf.py). Values are those that PyPI's gguf dequantizes to, in float32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/safetensors.h"  // TensorInfo

namespace oscar {

// The change of each value.
enum class GgufChange {
  kNone,
  kMinusOne,    // norms that transformers adds 1 to, stored with it added
  kLogOfMinus,  // A_log, stored as -exp(A_log)
};

struct GgufWeight {
  // A run of bytes of one stored tensor: rows of `columns` values, the same number for each matrix.
  struct Part {
    std::string tensor;  // "blk.0.attn_q.weight"
    const GgmlType* type = nullptr;
    uint64_t begin = 0, size = 0;  // bytes within the stored tensor
    int64_t rows = 0;              // per matrix, as stored
    int64_t columns = 0;
    int64_t heads = 0;  // if not 0, each matrix is [heads, rows / heads, columns], and the dense
                        // rows are [heads, columns] of rows / heads values (W_UK of DeepSeek)
    int64_t dense_rows() const { return heads == 0 ? rows : heads * columns; }
    int64_t dense_columns() const { return heads == 0 ? columns : rows / heads; }
  };

  TensorInfo info;  // dtype of plain weights, else U8; shape of the dense tensor
  std::vector<Part> parts;
  int64_t matrices = 1;            // the dense tensor is that many matrices [rows, columns],
  bool transposed = false;         // or [columns, rows] (gpt-oss's experts)
  std::vector<int64_t> row_order;  // row r is row row_order[r] of all parts' rows; empty: identity
  std::vector<int64_t> column_order;  // likewise for columns
  GgufChange change = GgufChange::kNone;

  // Whether the bytes of the single part equal the dense tensor.
  bool plain() const;
};

}  // namespace oscar
