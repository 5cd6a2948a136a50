// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the HDF5 dump (dump_format.h), layer by layer. The file appears under its name only when
// it is complete. Trap: everything that the options announce must be written: lse and scores if
// there are score rows, logits if there is a width for them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "capture/dump/attention_dump.h"
#include "capture/dump/hdf5_file.h"

namespace oscar {

// A dump of consecutive sequences, stored next to the dump that is written.
struct DumpPart {
  std::string file;  // file name
  int64_t tokens = 0, score_rows = 0, longest_sequence = 0;
};

struct DumpWriterOptions {
  int deflate_level = 0;                 // 0 to 9
  std::vector<int64_t> score_rows = {};  // token indices, ascending; empty: neither scores nor lse
  int64_t logits_width = 0;              // vocabulary; 0: no logits
  // Per sequence, as in DataSet::counted; empty: no query is excluded.
  std::vector<std::vector<uint8_t>> counted = {};
  std::vector<int32_t> domains = {};  // per sequence, as in DataSet::domains
  // If not empty, the file stores the sequences and the descriptions of layers and readers, but no
  // values. All values are read from these parts (HDF5's virtual datasets).
  std::vector<DumpPart> parts = {};
};

// Throws ResourceError for failed writes; wrong use is an OSCAR_CHECK.
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

  // Write to the current layer, if there are score rows. `lse` [tokens, num_q_heads] has whole
  // tokens; `scores` [rows, num_q_heads, longest_sequence()] has rows [first_row, first_row + rows)
  // of options.score_rows.
  void WriteLse(int64_t first_token, std::span<const float> lse);
  void WriteScores(int64_t first_row, std::span<const float> scores);

  // Writes whole tokens [tokens, logits_width].
  void WriteLogits(int64_t first_token, std::span<const float> logits);

  const DumpWriterOptions& options() const { return options_; }
  int64_t longest_sequence() const { return longest_; }  // tokens

  // Must be called once, after the last layer.
  void Commit(const DumpOrigin& origin);

 private:
  void Declare(const DumpLayer& layer, DumpTensor tensor);
  // The meaning of a dataset's rows: tokens, score rows, or rows that are equal in all parts.
  enum class Rows { kTokens, kScoreRows, kWhole };
  void Declare(std::string_view dataset, Hdf5Type type, const Hdf5Shape& shape, Rows rows);
  void WriteRows(std::string_view dataset, int64_t first_row, std::span<const std::byte> values);
  std::string InGroup(std::string_view dataset) const;

  Hdf5Writer file_;
  DumpWriterOptions options_;
  std::vector<int64_t> offsets_;
  int64_t longest_ = 0, num_layers_ = 0;
  DumpLayer layer_;    // the current layer or reader
  std::string group_;  // the group of its datasets
};

}  // namespace oscar
