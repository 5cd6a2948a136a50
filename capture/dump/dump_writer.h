// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the HDF5 dump (dump_format.h), layer by layer; it appears under its name whole or not at
// all. Trap: everything announced must be written: scores if score rows were given, logits if their
// width was.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "capture/dump/attention_dump.h"
#include "capture/dump/hdf5_file.h"

namespace oscar {

// A dump of some of the sequences, in a row, that stands beside the one that is written.
struct DumpPart {
  std::string file;  // its name
  int64_t tokens = 0, score_rows = 0, longest_sequence = 0;
};

struct DumpWriterOptions {
  int deflate_level = 0;                 // 0 to 9
  std::vector<int64_t> score_rows = {};  // token indices, ascending; empty: neither scores nor lse
  int64_t logits_width = 0;              // vocabulary; 0: no logits
  // Per sequence, as DataSet::counted has it; empty: all queries count.
  std::vector<std::vector<uint8_t>> counted = {};
  std::vector<int32_t> domains = {};  // per sequence, as DataSet::domains has it
  // Not empty: nothing is to be written but what BeginLayer and BeginReader say of each layer; all
  // values are read out of these (HDF5's virtual datasets).
  std::vector<DumpPart> parts = {};
};

// Failures to write are ResourceErrors; wrong use is OSCAR_CHECK.
class DumpWriter : public DumpSink {
 public:
  DumpWriter(const std::filesystem::path& path, const std::vector<std::vector<int32_t>>& sequences,
             DumpWriterOptions options);

  bool wants(DumpTensor) const override { return true; }
  void BeginLayer(const DumpLayer& layer) override;
  void WriteSequence(DumpTensor tensor, int64_t sequence,
                     std::span<const std::byte> values) override;
  void WriteKvB(std::span<const std::byte> values) override;
  void EndLayer() override;
  void BeginReader(const DumpLayer& source, const CacheReader& reader) override;

  // Of the current layer, if there are score rows. `lse` [tokens, num_q_heads] of whole tokens;
  // `scores` [rows, num_q_heads, longest_sequence()] of rows [first_row, first_row + rows) of
  // options.score_rows.
  void WriteLse(int64_t first_token, std::span<const float> lse);
  void WriteScores(int64_t first_row, std::span<const float> scores);

  // [tokens, logits_width] of whole tokens.
  void WriteLogits(int64_t first_token, std::span<const float> logits);

  const DumpWriterOptions& options() const { return options_; }
  int64_t longest_sequence() const { return longest_; }  // tokens

  // Once, after the last layer.
  void Commit(const DumpOrigin& origin);

 private:
  void Declare(const DumpLayer& layer, DumpTensor tensor);
  // Of tokens, of score rows, or the same in each part.
  enum class Rows { kTokens, kScoreRows, kWhole };
  void Declare(std::string_view dataset, Hdf5Type type, const Hdf5Shape& shape, Rows rows);
  void WriteRows(std::string_view dataset, int64_t first_row, std::span<const std::byte> values);
  std::string InGroup(std::string_view dataset) const;

  Hdf5Writer file_;
  DumpWriterOptions options_;
  std::vector<int64_t> offsets_;
  int64_t longest_ = 0, num_layers_ = 0;
  DumpLayer layer_;    // the current one, or one that reads it
  std::string group_;  // where its datasets stand
};

}  // namespace oscar
