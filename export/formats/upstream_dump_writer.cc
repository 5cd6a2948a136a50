// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "export/formats/pt/pt_writer.h"
#include "export/formats/upstream_dump.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Writes the same as torch.save(tensor, "<chunk>.pt").
void WriteTensor(const fs::path& folder, int64_t chunk, TensorBytes tensor) {
  fs::create_directories(folder);
  const std::string stem = std::to_string(chunk);
  WritePt(folder / (stem + ".pt"), PtOut(std::move(tensor)), stem);
}

fs::path LayerFolder(const AtomicDirectory& directory, const DumpLayer& layer) {
  return directory.staging() / fmt::format("layer_{}", layer.layer_id);
}

}  // namespace

UpstreamDumpWriter::UpstreamDumpWriter(const fs::path& directory,
                                       std::vector<int64_t> sequence_lengths)
    : directory_(directory), lengths_(std::move(sequence_lengths)) {
  OSCAR_CHECK(!lengths_.empty());
  int64_t chunk = 1, tokens = 0;
  for (const int64_t length : lengths_) {
    if (tokens > 0 && tokens + length > kUpstreamChunkTokens) {
      ++chunk;
      tokens = 0;
    }
    chunk_of_.push_back(chunk);
    tokens += length;
  }
}

void CheckUpstreamHolds(const DumpLayer& layer) {
  if (layer.latent()) {
    throw InputError(
        fmt::format("layer {} has latent attention, which upstream's dump format cannot hold",
                    layer.layer_id),
        Remedy::kDumpAsHdf5);
  }
  if (!layer.readers.empty()) {
    throw InputError(fmt::format("layer {} reads the keys and values of layer {}, and upstream's "
                                 "dump format cannot hold its queries, which the fit needs",
                                 layer.readers.front().layer_id, layer.layer_id),
                     Remedy::kDumpAsHdf5);
  }
}

void UpstreamDumpWriter::BeginLayer(const DumpLayer& layer) {
  CheckUpstreamHolds(layer);
  layer_ = layer;
  const int64_t warmup = std::min(lengths_.front(), kUpstreamWarmupTokens);
  WriteLengths(0, {static_cast<int32_t>(warmup)});
  std::vector<int32_t> lengths;
  for (size_t i = 0; i < lengths_.size(); ++i) {
    lengths.push_back(static_cast<int32_t>(lengths_[i]));
    if (i + 1 < lengths_.size() && chunk_of_[i + 1] == chunk_of_[i]) continue;
    WriteLengths(chunk_of_[i], lengths);
    lengths.clear();
  }
}

void UpstreamDumpWriter::WriteSequence(DumpTensor tensor, int64_t sequence,
                                       std::span<const std::byte> values) {
  const auto i = static_cast<size_t>(sequence);
  const int64_t row = layer_.row_bytes(tensor);
  OSCAR_CHECK_EQ(static_cast<int64_t>(values.size()), lengths_.at(i) * row);
  if (i == 0) {
    const int64_t warmup = std::min(lengths_.front(), kUpstreamWarmupTokens);
    WriteValues(tensor, 0, values.first(static_cast<size_t>(warmup * row)));
  }
  std::vector<std::byte>& gathered = gathered_.at(static_cast<size_t>(tensor));
  gathered.insert(gathered.end(), values.begin(), values.end());
  if (i + 1 < lengths_.size() && chunk_of_[i + 1] == chunk_of_[i]) return;
  WriteValues(tensor, chunk_of_[i], gathered);
  gathered.clear();
}

void UpstreamDumpWriter::WriteValues(DumpTensor tensor, int64_t chunk,
                                     std::span<const std::byte> values) const {
  const int64_t tokens = static_cast<int64_t>(values.size()) / layer_.row_bytes(tensor);
  WriteTensor(LayerFolder(directory_, layer_) / DumpTensorName(tensor), chunk,
              {layer_.dtype, {tokens, layer_.heads(tensor), layer_.dim(tensor)}, values});
}

void UpstreamDumpWriter::WriteLengths(int64_t chunk, const std::vector<int32_t>& lengths) const {
  WriteTensor(
      LayerFolder(directory_, layer_) / "seq_lens", chunk,
      {DType::kI32, {static_cast<int64_t>(lengths.size())}, std::as_bytes(std::span(lengths))});
}

void UpstreamDumpWriter::EndLayer() {
  for (const auto& gathered : gathered_) OSCAR_CHECK(gathered.empty());
}

void UpstreamDumpWriter::BeginReader(const DumpLayer& source, const CacheReader& reader) {
  DumpLayer read = source;
  read.readers = {reader};
  CheckUpstreamHolds(read);
}

void UpstreamDumpWriter::Commit() { directory_.Commit(); }

}  // namespace oscar
