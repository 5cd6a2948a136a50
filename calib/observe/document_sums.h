// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums over documents in one order for everybody: two neighbours are added where they are a node of
// the binary tree over document numbers, and what is left at the end from the right. So whoever
// adds some documents in a row hands on a few nodes, and all nodes together give the same bits
// however the documents were shared out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace oscar {

class DocumentSums {
 public:
  // The documents [index << level, (index + 1) << level). Undefined: none of them has anything to
  // add.
  struct Node {
    int level = 0;
    int64_t index = 0;
    at::Tensor sum = {};
  };

  // In order: each begins where the one before ended. Sums that were added are never changed.
  void Add(Node node);
  void Add(int64_t document, const at::Tensor& sum) { Add(Node{0, document, sum}); }

  const std::vector<Node>& nodes() const { return nodes_; }
  at::Tensor Total() const;  // may be one of the nodes; undefined: nothing was added

 private:
  std::vector<Node> nodes_;
};

}  // namespace oscar
