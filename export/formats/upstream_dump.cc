// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/upstream_dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "capture/files/quote.h"
#include "export/formats/pt/pt_file.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr std::string_view kLayerPrefix = "layer_";
constexpr std::string_view kSeqLens = "seq_lens";
constexpr std::string_view kAgain = "dump again, or copy the directory again";

// Parses "17", without sign or leading zeros.
std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || number < 0 || fmt::to_string(number) != text) return std::nullopt;
  return number;
}

const PtTensor& RootTensor(const PtFile& file) {
  const auto* tensor = file.root().If<PtTensor>();
  if (tensor == nullptr) {
    throw InputError(fmt::format("{}: expected one tensor, found a {}", file.path().string(),
                                 PtTypeName(file.root())));
  }
  return *tensor;
}

// Reads the integers of a 1-D tensor, each at least 1.
std::vector<int64_t> ReadLengths(const fs::path& path) {
  const PtFile file = PtFile::Open(path);
  const PtTensor& tensor = RootTensor(file);
  if (tensor.shape.size() != 1 || (tensor.dtype != DType::kI32 && tensor.dtype != DType::kI64)) {
    throw InputError(fmt::format("{}: expected [n] int32, found [{}] {}", path.string(),
                                 fmt::join(tensor.shape, ", "), TorchDTypeName(tensor.dtype)));
  }
  const std::vector<std::byte> bytes = file.RawBytes(tensor);
  const auto size = static_cast<size_t>(DTypeBytes(tensor.dtype));
  std::vector<int64_t> lengths;
  for (size_t at = 0; at < bytes.size(); at += size) {
    int64_t value = 0;
    if (tensor.dtype == DType::kI32) {
      int32_t narrow = 0;
      std::memcpy(&narrow, bytes.data() + at, sizeof narrow);
      value = narrow;
    } else {
      std::memcpy(&value, bytes.data() + at, sizeof value);
    }
    if (value < 1 || value > std::numeric_limits<int32_t>::max()) {
      throw InputError(fmt::format("{}: contains a sequence of {} tokens, expected 1 to 2^31 - 1",
                                   path.string(), value));
    }
    lengths.push_back(value);
  }
  if (lengths.empty()) throw InputError(path.string() + ": lists no sequences");
  return lengths;
}

// Returns the lengths of the sequences in the last chunk, which has `rows` tokens. Their sum may be
// larger, because the dump may have stopped at its token budget; the end is then cut off.
std::vector<int64_t> CutToRows(std::vector<int64_t> lengths, int64_t rows, const fs::path& path) {
  const int64_t sum = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  if (sum < rows) {
    throw InputError(fmt::format("{}: its sequences have {} tokens, but the chunk has {}; {}",
                                 path.string(), sum, rows, kAgain));
  }
  for (int64_t over = sum - rows; over > 0;) {
    const int64_t cut = std::min(over, lengths.back());
    lengths.back() -= cut;
    over -= cut;
    if (lengths.back() == 0) lengths.pop_back();
  }
  return lengths;
}

// Whether head `head` and the previous head have the same bytes for every token. `shape` is
// [tokens, heads, dim].
bool SameHeads(std::span<const std::byte> values, const std::vector<int64_t>& shape, int64_t head) {
  const size_t row = values.size() / static_cast<size_t>(shape[0]);
  const size_t bytes = row / static_cast<size_t>(shape[1]);
  for (size_t at = static_cast<size_t>(head) * bytes; at < values.size(); at += row) {
    if (std::memcmp(&values[at], &values[at - bytes], bytes) != 0) return false;
  }
  return true;
}

}  // namespace

UpstreamDump::UpstreamDump(const fs::path& directory, const UpstreamDumpOptions& options)
    : directory_(directory), name_(directory.string()) {
  origin_.format = "upstream";
  if (!fs::is_directory(directory)) throw InputError(name_ + ": is not a directory");
  for (const int id : LayerIds(options.allow_layer_gaps)) {
    std::vector<int64_t> numbers = ChunkNumbers(id);
    if (options.skip_warmup && numbers.front() == 0) {
      const std::vector<int64_t> warmup = ReadLengths(FilePath(id, kSeqLens, 0));
      skipped_tokens_ = std::accumulate(warmup.begin(), warmup.end(), int64_t{0});
      numbers.erase(numbers.begin());
    }
    if (numbers.empty()) {
      throw InputError(fmt::format("{}: layer {} has no chunk except the warm-up", name_, id));
    }
    std::vector<std::vector<int64_t>> lengths = SequenceLengths(id, numbers);
    layers_.push_back(Geometry(id, numbers.front(), options.scale));
    const int64_t rows = Load(id, DumpTensor::kQ, numbers.back()).shape[0];
    lengths.back() = CutToRows(lengths.back(), rows, FilePath(id, kSeqLens, numbers.back()));

    std::vector<int64_t> all;
    std::vector<Chunk> chunks;
    int64_t first = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int64_t tokens = std::accumulate(lengths[i].begin(), lengths[i].end(), int64_t{0});
      chunks.push_back({numbers[i], first, tokens});
      first += tokens;
      all.insert(all.end(), lengths[i].begin(), lengths[i].end());
    }
    if (layers_.size() == 1) {
      lengths_ = std::move(all);
      chunks_ = std::move(chunks);
    } else if (all != lengths_ || chunks.size() != chunks_.size()) {
      throw InputError(
          fmt::format("{}: layer {} has {} sequences in {} chunks and layer {} has {} in {}, or "
                      "their lengths differ; every layer must have the same tokens; {}",
                      name_, id, all.size(), chunks.size(), layers_.front().layer_id,
                      lengths_.size(), chunks_.size(), kAgain));
    }
  }
}

fs::path UpstreamDump::FilePath(int layer_id, std::string_view side, int64_t chunk) const {
  return directory_ / fmt::format("{}{}", kLayerPrefix, layer_id) / side /
         fmt::format("{}.pt", chunk);
}

std::vector<int> UpstreamDump::LayerIds(bool allow_gaps) const {
  std::vector<int> ids;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kLayerPrefix)) continue;
    const auto id = ParseNumber(std::string_view(name).substr(kLayerPrefix.size()));
    if (!id || *id > std::numeric_limits<int>::max() || !entry.is_directory()) {
      throw InputError(fmt::format("{}: {} is not a layer's directory", name_, Quoted(name)));
    }
    ids.push_back(static_cast<int>(*id));
  }
  if (ids.empty()) {
    throw InputError(fmt::format("{}: contains no {}<id>, expected a dump of upstream's server",
                                 name_, kLayerPrefix));
  }
  std::sort(ids.begin(), ids.end());
  for (size_t i = 2; i < ids.size() && !allow_gaps; ++i) {
    if (ids[i] - ids[i - 1] != ids[1] - ids[0]) {
      throw InputError(fmt::format(
          "{}: layers {} and {} are spaced differently from layers {} and {}, so one may be "
          "missing; if this model's attention layers are unevenly spaced, give --allow-layer-gaps",
          name_, ids[i - 1], ids[i], ids[0], ids[1]));
    }
  }
  return ids;
}

std::vector<int64_t> UpstreamDump::ChunkNumbers(int layer_id) const {
  std::vector<int64_t> expected;
  for (const std::string_view side :
       {kSeqLens, DumpTensorName(DumpTensor::kQ), DumpTensorName(DumpTensor::kK),
        DumpTensorName(DumpTensor::kV)}) {
    const fs::path folder = FilePath(layer_id, side, 0).parent_path();
    if (!fs::is_directory(folder)) {
      throw InputError(fmt::format(
          "{}: missing{}", folder.string(),
          side == kSeqLens ? "; it says where each sequence ends, so attention cannot be computed "
                             "without it; dump with a version that writes it"
                           : fmt::format("; {}", kAgain)));
    }
    std::vector<int64_t> numbers;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      const auto number = ParseNumber(entry.path().stem().string());
      if (!number || entry.path().extension() != ".pt" || !entry.is_regular_file()) {
        throw InputError(
            fmt::format("{}: {} is not a chunk (<number>.pt)", folder.string(), Quoted(name)));
      }
      numbers.push_back(*number);
    }
    std::sort(numbers.begin(), numbers.end());
    if (numbers.empty()) throw InputError(folder.string() + ": contains no chunk");
    for (size_t i = 0; i < numbers.size(); ++i) {
      // If the warm-up was removed, the first chunk is number 1.
      const int64_t due = static_cast<int64_t>(i) + std::min<int64_t>(numbers.front(), 1);
      if (numbers[i] == due) continue;
      throw InputError(fmt::format("{}: chunk {} is missing; {}", folder.string(), due, kAgain));
    }
    if (expected.empty()) expected = numbers;
    if (numbers != expected) {
      throw InputError(fmt::format("{}: has {} chunks, but {} has {}; {}", folder.string(),
                                   numbers.size(), kSeqLens, expected.size(), kAgain));
    }
  }
  return expected;
}

std::vector<std::vector<int64_t>> UpstreamDump::SequenceLengths(
    int layer_id, const std::vector<int64_t>& chunks) const {
  std::vector<std::vector<int64_t>> lengths;
  for (const int64_t chunk : chunks)
    lengths.push_back(ReadLengths(FilePath(layer_id, kSeqLens, chunk)));
  return lengths;
}

DumpLayer UpstreamDump::Geometry(int layer_id, int64_t chunk, std::optional<double> scale) const {
  const auto load = [&](DumpTensor tensor) -> const Loaded& {
    return Load(layer_id, tensor, chunk);
  };
  const Loaded &q = load(DumpTensor::kQ), &k = load(DumpTensor::kK), &v = load(DumpTensor::kV);
  DumpLayer layer;
  layer.layer_id = layer_id;
  layer.num_q_heads = q.shape[1];
  layer.num_kv_heads = k.shape[1];
  layer.head_dim = q.shape[2];
  layer.v_head_dim = v.shape[2];
  layer.scale = scale.value_or(1 / std::sqrt(static_cast<double>(layer.head_dim)));
  layer.dtype = q.dtype;
  const std::string what = fmt::format("{}: layer {}", name_, layer_id);
  CheckDumpLayer(layer, what);

  for (int64_t head = 1; head < layer.num_kv_heads; ++head) {
    if (SameHeads(k.values, k.shape, head) && SameHeads(v.values, v.shape, head)) {
      throw InputError(
          fmt::format("{}: KV heads {} and {} are copies of each other, which a server makes if "
                      "its tensor parallelism exceeds the number of KV heads; dump again with a "
                      "smaller tensor parallelism",
                      what, head - 1, head));
    }
  }
  return layer;
}

const UpstreamDump::Loaded& UpstreamDump::Load(int layer_id, DumpTensor tensor,
                                               int64_t chunk) const {
  Loaded& loaded = loaded_.at(static_cast<size_t>(tensor));
  const fs::path path = FilePath(layer_id, DumpTensorName(tensor), chunk);
  if (loaded.path == path) return loaded;
  loaded = {};
  const PtFile file = PtFile::Open(path);
  const PtTensor& root = RootTensor(file);
  if (root.shape.size() != 3 || PtFile::Count(root) == 0) {
    throw InputError(fmt::format("{}: shape [{}], expected [tokens, heads, head_dim]",
                                 path.string(), fmt::join(root.shape, ", ")));
  }
  loaded = {path, root.dtype, root.shape, file.RawBytes(root)};
  return loaded;
}

void UpstreamDump::ReadRows(size_t layer_index, DumpTensor tensor, int64_t first_token,
                            std::span<std::byte> out) const {
  const DumpLayer& layer = layers_.at(layer_index);
  const int64_t row = layer.row_bytes(tensor);
  OSCAR_CHECK_EQ(static_cast<int64_t>(out.size()) % row, 0);
  auto chunk = std::upper_bound(
      chunks_.begin(), chunks_.end(), first_token,
      [](int64_t token, const Chunk& c) { return token < c.first_token + c.num_tokens; });
  while (!out.empty()) {
    OSCAR_CHECK(chunk != chunks_.end());
    const Loaded& file = Load(layer.layer_id, tensor, chunk->number);
    const std::vector<int64_t> expected = {chunk->num_tokens, layer.heads(tensor),
                                           layer.dim(tensor)};
    if (file.dtype != layer.dtype || file.shape != expected) {
      throw InputError(fmt::format("{}: [{}] {}, expected [{}] {}", file.path.string(),
                                   fmt::join(file.shape, ", "), TorchDTypeName(file.dtype),
                                   fmt::join(expected, ", "), TorchDTypeName(layer.dtype)));
    }
    const int64_t begin = first_token - chunk->first_token;
    const int64_t count =
        std::min(chunk->num_tokens - begin, static_cast<int64_t>(out.size()) / row);
    const auto values =
        std::span(file.values)
            .subspan(static_cast<size_t>(begin * row), static_cast<size_t>(count * row));
    if (const auto bad = FirstNotFinite(layer.dtype, values)) {
      const int64_t width = layer.heads(tensor) * layer.dim(tensor);
      throw InputError(fmt::format("{}: row {}, head {} is NaN or infinite; {}", file.path.string(),
                                   begin + static_cast<int64_t>(*bad) / width,
                                   static_cast<int64_t>(*bad) % width / layer.dim(tensor), kAgain));
    }
    std::copy(values.begin(), values.end(), out.begin());
    out = out.subspan(values.size());
    first_token += count;
    ++chunk;
  }
}

}  // namespace oscar
