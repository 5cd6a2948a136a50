// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "post_processor" of tokenizer.json: the special tokens around a text (BOS, EOS,
// "[gMASK]<sop>"). Only single texts occur here, so a template for pairs is ignored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/text/tokenizer/component_table.h"

namespace oscar {

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // Throws InputError if the result has more than `max_ids`.
  virtual std::vector<int32_t> Apply(std::vector<int32_t> ids, size_t max_ids) const = 0;
  // Returns the ids that this step can insert.
  virtual std::vector<int32_t> InsertedIds() const = 0;
};

// Throws InputError naming `where` for a type that is not in the table.
Chain<PostProcessor> MakePostProcessors(const Json& component, const std::string& where);

}  // namespace oscar
