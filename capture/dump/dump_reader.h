// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the HDF5 dump (dump_format.h). Opening checks everything except the values: names, types,
// and every shape against the geometry attributes. Values are checked when they are read. All
// errors are InputErrors naming file and object. HDF5 itself parses the file first (README.md), so
// do not open a dump from a source that you do not trust.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/dump/attention_dump.h"
#include "capture/dump/hdf5_file.h"

namespace oscar {

class DumpReader : public AttentionDump {
 public:
  explicit DumpReader(const std::filesystem::path& path);

  const DumpOrigin& origin() const override { return origin_; }
  const std::string& name() const override { return name_; }
  const std::vector<DumpLayer>& layers() const override { return layers_; }
  const std::vector<int64_t>& sequence_lengths() const override { return lengths_; }
  bool has(DumpTensor) const override { return true; }
  void ReadRows(size_t layer_index, DumpTensor tensor, int64_t first_token,
                std::span<std::byte> out) const override;
  void ReadReaderRows(size_t layer_index, size_t reader, DumpTensor tensor, int64_t first_token,
                      std::span<std::byte> out) const override;
  void ReadKvB(size_t layer_index, std::span<std::byte> out) const override;

  std::span<const int32_t> token_ids() const override { return ids_; }
  std::span<const uint8_t> counted() const override { return counted_; }
  std::span<const int32_t> domains() const override { return domains_; }
  int64_t longest_sequence() const { return longest_; }  // tokens

  // Either all layers have score rows or none has; empty if none has.
  const std::vector<int64_t>& score_rows() const { return score_rows_; }  // [R], ascending
  int64_t logits_width() const { return logits_width_; }                  // 0: no logits

 private:
  [[noreturn]] void Refuse(std::string_view object, const std::string& why) const;
  void CheckNames(std::string_view group, std::span<const std::string_view> known) const;
  void CheckShape(std::string_view dataset, Hdf5Type type, const Hdf5Shape& expected) const;
  DumpOrigin ReadOrigin() const;
  void ReadSequences();
  std::vector<int> LayerIds(std::string_view group) const;
  DumpLayer ReadLayer(int layer_id) const;
  DumpModelFacts ReadFacts(std::string_view group) const;
  std::vector<CacheReader> ReadReaders(const DumpLayer& layer) const;
  void CheckStoredType(const DumpLayer& layer, const std::string& dataset,
                       const Hdf5Shape& shape) const;
  // Reads rows of a tensor of the layer or of one of its readers.
  void ReadHeads(const DumpLayer& layer, DumpTensor tensor, const std::string& dataset,
                 int64_t first_token, std::span<std::byte> out) const;
  void ReadStored(const DumpLayer& layer, const std::string& dataset, const Hdf5Shape& shape,
                  int64_t first_row, std::span<std::byte> out) const;
  void ReadScoreRows(const DumpLayer& layer);

  Hdf5Reader file_;
  std::string name_;
  DumpOrigin origin_;
  std::vector<DumpLayer> layers_;
  std::vector<int64_t> lengths_, score_rows_;
  std::vector<int32_t> ids_;
  std::vector<uint8_t> counted_;
  std::vector<int32_t> domains_;
  int64_t longest_ = 0, logits_width_ = 0;
};

}  // namespace oscar
