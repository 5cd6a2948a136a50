// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a model of tests/data over reproducible token ids, and keeps everything an observer
// receives.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/capture/model/golden.h"
#include "tests/support/test_data.h"

namespace oscar {

using Sequences = std::vector<std::vector<int32_t>>;

inline Sequences SomeSequences(const std::vector<int64_t>& lengths, int32_t vocab_size = 256) {
  Sequences sequences;
  int32_t id = 3;
  for (const int64_t length : lengths) {
    auto& sequence = sequences.emplace_back();
    for (int64_t i = 0; i < length; ++i)
      sequence.push_back((id = (id * 73 + 11) % 256) % vocab_size);
  }
  return sequences;
}

inline std::vector<int64_t> Lengths(const Sequences& sequences) {
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(static_cast<int64_t>(sequence.size()));
  return lengths;
}

struct Model {
  explicit Model(const char* name)
      : spec(ReadModelSpec(TestData(name))), checkpoint(Checkpoint::Open(TestData(name))) {}
  ModelSpec spec;
  Checkpoint checkpoint;
};

struct Result {
  at::Tensor hidden;
  std::map<std::string, at::Tensor> kept;
};

inline Result RunAll(const Model& model, const Sequences& sequences,
                     const LoopOptions& options = {}, at::Device device = at::kCPU,
                     at::ScalarType dtype = at::kFloat) {
  LoopOptions with_ids = options;
  with_ids.token_ids = &sequences;
  const LayerLoop loop(model.checkpoint, model.spec, device, dtype, with_ids);
  Result result;
  result.hidden = loop.Embed(sequences);
  KeepingObserver observer;
  loop.Run(result.hidden, Lengths(sequences), 0, observer, [](size_t) { return true; });
  result.kept = observer.kept;
  return result;
}

inline bool SameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

}  // namespace oscar
