// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/dump/dump_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/dump/dump_format.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

using namespace dump_format;  // NOLINT(build/namespaces): names of the format

Hdf5Type StoredType(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return Hdf5Type::kUInt16;
    case DType::kF16:
      return Hdf5Type::kFloat16;
    case DType::kF32:
      return Hdf5Type::kFloat32;
    default:
      OSCAR_CHECK(false);
  }
  return {};
}

template <typename T>
std::span<const T> As(std::span<const std::byte> bytes) {
  OSCAR_CHECK_EQ(bytes.size() % sizeof(T), 0u);
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

DumpWriter::DumpWriter(const std::filesystem::path& path,
                       const std::vector<std::vector<int32_t>>& sequences,
                       DumpWriterOptions options)
    : file_(path), options_(std::move(options)), offsets_{0} {
  std::vector<int32_t> ids;
  for (const auto& sequence : sequences) {
    OSCAR_CHECK(!sequence.empty());
    ids.insert(ids.end(), sequence.begin(), sequence.end());
    offsets_.push_back(static_cast<int64_t>(ids.size()));
    longest_ = std::max(longest_, static_cast<int64_t>(sequence.size()));
  }
  const Hdf5DatasetOptions stored{options_.deflate_level};
  file_.Write<int32_t>(kInputIds, {offsets_.back()}, ids, stored);
  file_.Write<int64_t>(kSequenceOffsets, {static_cast<int64_t>(offsets_.size())}, offsets_);
  if (!options_.counted.empty()) {
    OSCAR_CHECK_EQ(options_.counted.size(), sequences.size());
    std::vector<uint8_t> counted;
    for (size_t i = 0; i < sequences.size(); ++i) {
      counted.insert(counted.end(), options_.counted[i].begin(), options_.counted[i].end());
      counted.resize(static_cast<size_t>(offsets_[i + 1]), 1);
    }
    file_.Write<uint8_t>(kCounted, {offsets_.back()}, counted, stored);
  }
  if (!options_.domains.empty()) {
    OSCAR_CHECK_EQ(options_.domains.size(), sequences.size());
    file_.Write<int32_t>(kDomains, {std::ssize(options_.domains)}, options_.domains);
  }
  file_.CreateGroup(kLayers);
  if (options_.logits_width > 0) {
    Declare(kLogits, Hdf5Type::kFloat32, {offsets_.back(), options_.logits_width}, Rows::kTokens);
  }
}

void DumpWriter::BeginLayer(const DumpLayer& layer) {
  OSCAR_CHECK(layer.facts.has_value());
  layer_ = layer;
  ++num_layers_;
  const int id = layer.layer_id;
  group_ = LayerPath(id);
  const int64_t tokens = offsets_.back();
  for (const DumpTensor tensor : layer.tensors()) Declare(layer, tensor);
  if (!options_.score_rows.empty()) {
    const auto rows = static_cast<int64_t>(options_.score_rows.size());
    file_.Write<int64_t>(LayerPath(id, kScoreRows), {rows}, options_.score_rows);
    Declare(LayerPath(id, kLse), Hdf5Type::kFloat32, {tokens, layer.num_q_heads}, Rows::kTokens);
    Declare(LayerPath(id, kScores), Hdf5Type::kFloat32, {rows, layer.num_q_heads, longest_},
            Rows::kScoreRows);
  }
  if (!layer.sinks.empty())
    file_.Write<float>(LayerPath(id, kSinks), {layer.num_q_heads}, layer.sinks);
  const std::string& group = group_;
  file_.SetAttribute(group, kKind, layer.latent() ? kKindMla : kKindGqa);
  if (layer.latent()) {
    const std::string kv_b = LayerPath(id, kKvB);
    Declare(kv_b, StoredType(layer.dtype), layer.kv_b_shape(), Rows::kWhole);
    if (layer.dtype == DType::kBF16) file_.SetAttribute(kv_b, kDtype, kDtypeBf16);
    file_.SetAttribute(group, kLatentRank, layer.latent_rank);
    file_.SetAttribute(group, kRopeDim, layer.rope_dim);
  }
  file_.SetAttribute(group, kNumQHeads, layer.num_q_heads);
  file_.SetAttribute(group, kNumKvHeads, layer.num_kv_heads);
  file_.SetAttribute(group, kHeadDim, layer.head_dim);
  file_.SetAttribute(group, kVHeadDim, layer.v_head_dim);
  file_.SetAttribute(group, kScale, layer.scale);
  file_.SetAttribute(group, kWindow, layer.window.value_or(0));
  file_.SetAttribute(group, kSoftcap, layer.softcap);
  file_.SetAttribute(group, kRope, layer.facts->rope);
  file_.SetAttribute(group, kQkNorm, int64_t{layer.facts->qk_norm});
  file_.SetAttribute(group, kNotFoldable, layer.facts->not_foldable);
}

void DumpWriter::BeginReader(const DumpLayer& source, const CacheReader& reader) {
  layer_ = source.Reader(reader);
  group_ = ReaderPath(source.layer_id, reader.layer_id);
  for (const DumpTensor tensor : kReaderTensors) Declare(layer_, tensor);
}

void DumpWriter::Declare(const DumpLayer& layer, DumpTensor tensor) {
  const std::string name = InGroup(DumpTensorName(tensor));
  Declare(name, StoredType(layer.dtype), layer.shape(tensor, offsets_.back()), Rows::kTokens);
  if (layer.dtype == DType::kBF16) file_.SetAttribute(name, kDtype, kDtypeBf16);
}

void DumpWriter::Declare(std::string_view dataset, Hdf5Type type, const Hdf5Shape& shape,
                         Rows rows) {
  if (options_.parts.empty()) {
    file_.Declare(dataset, type, shape, {options_.deflate_level});
    return;
  }
  std::vector<Hdf5Writer::Source> sources;
  for (const DumpPart& part : options_.parts) {
    Hdf5Shape of_part = shape;
    if (rows == Rows::kTokens) of_part[0] = part.tokens;
    if (rows == Rows::kScoreRows) {
      of_part[0] = part.score_rows;
      of_part.back() = part.longest_sequence;
    }
    sources.push_back({part.file, of_part});
    if (rows == Rows::kWhole) break;
  }
  file_.DeclareVirtual(dataset, type, shape, sources);
}

std::string DumpWriter::InGroup(std::string_view dataset) const {
  return fmt::format("{}/{}", group_, dataset);
}

void DumpWriter::WriteSequence(DumpTensor tensor, int64_t sequence,
                               std::span<const std::byte> values) {
  const int64_t first = offsets_.at(static_cast<size_t>(sequence));
  const int64_t tokens = offsets_.at(static_cast<size_t>(sequence) + 1) - first;
  OSCAR_CHECK_EQ(static_cast<int64_t>(values.size()), tokens * layer_.row_bytes(tensor));
  WriteRows(DumpTensorName(tensor), first, values);
}

void DumpWriter::WriteKvB(std::span<const std::byte> values) {
  OSCAR_CHECK_EQ(static_cast<int64_t>(values.size()), layer_.kv_b_bytes());
  WriteRows(kKvB, 0, values);
}

void DumpWriter::WriteRows(std::string_view dataset, int64_t first_row,
                           std::span<const std::byte> values) {
  const std::string name = InGroup(dataset);
  switch (layer_.dtype) {
    case DType::kBF16:
      return file_.WriteRows(name, first_row, As<uint16_t>(values));
    case DType::kF16:
      return file_.WriteRows(name, first_row, As<Float16>(values));
    default:
      return file_.WriteRows(name, first_row, As<float>(values));
  }
}

void DumpWriter::WriteLse(int64_t first_token, std::span<const float> lse) {
  file_.WriteRows(LayerPath(layer_.layer_id, kLse), first_token, lse);
}

void DumpWriter::WriteScores(int64_t first_row, std::span<const float> scores) {
  file_.WriteRows(LayerPath(layer_.layer_id, kScores), first_row, scores);
}

void DumpWriter::EndLayer() {}  // Commit checks that every row was written

void DumpWriter::WriteLogits(int64_t first_token, std::span<const float> logits) {
  file_.WriteRows(kLogits, first_token, logits);
}

void DumpWriter::Commit(const DumpOrigin& origin) {
  file_.SetAttribute("/", kFormatAttribute, kFormat);
  file_.SetAttribute("/", kVersionAttribute, kVersion);
  file_.SetAttribute("/", kNumLayers, num_layers_);
  file_.SetAttribute("/", kModel, origin.model);
  file_.SetAttribute("/", kModelDigest, origin.model_digest);
  file_.SetAttribute("/", kTokenizerDigest, origin.tokenizer_digest);
  file_.SetAttribute("/", kDataDigest, origin.data_digest);
  file_.SetAttribute("/", kToolVersion, origin.tool_version);
  file_.Commit();
}

}  // namespace oscar
