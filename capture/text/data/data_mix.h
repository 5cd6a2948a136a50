// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Chooses documents if sources have weights or documents are sorted into buckets by length. The
// documents of one source and one bucket form a class. The token budget is divided among the
// classes in proportion to the weights of their sources; what a class cannot use goes to the
// others. Documents are taken whole and classes alternate, so that every prefix of the result has
// about the same mix. Shares count tokens, not documents.
#pragma once

#include <stddef.h>

#include <cstdint>
#include <vector>

namespace oscar {

struct MixClass {
  size_t source = 0;    // index of the source file
  int64_t longest = 0;  // upper end of the bucket in tokens; 0: no buckets, or beyond the last
  double weight = 1;    // weight of the source
  int64_t documents = 0, tokens = 0;            // available
  int64_t documents_used = 0, tokens_used = 0;  // number of documents and tokens taken
  bool operator==(const MixClass&) const = default;
};

struct MixDocument {
  size_t source;
  int64_t tokens;  // after truncation
};

struct MixOptions {
  std::vector<double> weights;   // one per source; empty: equal
  std::vector<int64_t> buckets;  // upper ends in tokens, ascending; empty: one bucket
  bool empty() const { return weights.empty() && buckets.empty(); }
};

struct Mix {
  std::vector<size_t> order;      // indices of the documents taken
  std::vector<MixClass> classes;  // classes with documents
};

// Throws UsageError if the number of weights differs from the number of sources, if a weight is
// negative, if all are zero, or if buckets do not ascend.
void CheckMix(const MixOptions& options, size_t num_sources);
// Never takes documents without tokens.
Mix ChooseMix(const std::vector<MixDocument>& documents, const MixOptions& options, int64_t budget);

}  // namespace oscar
