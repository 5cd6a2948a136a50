// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds up sums over documents in the same order for any number of processes. Document numbers are
// the leaves of a binary tree. Two neighbouring sums are added once they form a node of the tree.
// The remaining nodes are added at the end, from the right. A process with adjacent documents
// passes on only a few nodes, and the total has the same bits however the documents were divided.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace oscar {

class DocumentSums {
 public:
  // The sum over documents [index << level, (index + 1) << level). Undefined if none of these
  // documents adds anything.
  struct Node {
    int level = 0;
    int64_t index = 0;
    at::Tensor sum = {};
  };

  // Adds nodes in order: each begins where the previous one ended. Added sums are never changed.
  void Add(Node node);
  void Add(int64_t document, const at::Tensor& sum) { Add(Node{0, document, sum}); }

  const std::vector<Node>& nodes() const { return nodes_; }
  at::Tensor Total() const;  // may be one of the nodes; undefined: nothing was added

 private:
  std::vector<Node> nodes_;
};

}  // namespace oscar
