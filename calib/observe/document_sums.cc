// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/observe/document_sums.h"

#include <ATen/ATen.h>

#include <utility>

namespace oscar {
namespace {

at::Tensor SumOf(const at::Tensor& left, const at::Tensor& right) {
  if (!left.defined()) return right;
  return right.defined() ? left.add(right) : left;
}

}  // namespace

void DocumentSums::Add(Node node) {
  while (!nodes_.empty() && nodes_.back().level == node.level && node.index % 2 == 1) {
    node = {node.level + 1, node.index / 2, SumOf(nodes_.back().sum, node.sum)};
    nodes_.pop_back();
  }
  nodes_.push_back(std::move(node));
}

at::Tensor DocumentSums::Total() const {
  at::Tensor total;
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) total = SumOf(node->sum, total);
  return total;
}

}  // namespace oscar
