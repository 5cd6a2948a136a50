// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/dump/dump_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "capture/dump/dump_format.h"
#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using namespace dump_format;  // NOLINT(build/namespaces): names of the format

template <typename T>
std::span<T> As(std::span<std::byte> bytes) {
  OSCAR_CHECK_EQ(bytes.size() % sizeof(T), 0u);
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Parses "17". Refuses signs, leading zeros and anything else.
std::optional<int> ParseLayerId(const std::string& text) {
  int id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) return std::nullopt;
  if (std::to_string(id) != text) return std::nullopt;
  return id;
}

}  // namespace

DumpReader::DumpReader(const std::filesystem::path& path) : file_(path), name_(path.string()) {
  origin_ = ReadOrigin();
  CheckNames("/", std::array{kInputIds, kSequenceOffsets, kCounted, kDomains, kLayers, kLogits});
  ReadSequences();
  const std::vector<int> layer_ids = LayerIds(kLayers);
  if (const int64_t num_layers = file_.IntAttribute("/", kNumLayers);
      num_layers != std::ssize(layer_ids)) {
    Refuse("/", fmt::format("{} is {}, but the dump has {} layers ({}), so layers were removed or "
                            "added; capture again",
                            kNumLayers, num_layers, layer_ids.size(), fmt::join(layer_ids, ", ")));
  }
  for (const int id : layer_ids) {
    layers_.push_back(ReadLayer(id));
    ReadScoreRows(layers_.back());
  }
  if (file_.Exists(kLogits)) {
    const auto tokens = static_cast<int64_t>(ids_.size());
    CheckShape(kLogits, Hdf5Type::kFloat32, {tokens, -1});
    logits_width_ = file_.dataset(kLogits).shape[1];
    if (logits_width_ < 1) Refuse(kLogits, "has a vocabulary of 0 tokens");
  }
}

void DumpReader::Refuse(std::string_view object, const std::string& why) const {
  throw InputError(fmt::format("{}: {}: {}", name_, Escaped(object), why));
}

void DumpReader::CheckNames(std::string_view group, std::span<const std::string_view> known) const {
  for (const std::string& name : file_.Children(group)) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      Refuse(group,
             fmt::format("contains {}, which does not belong in a dump of version {} (expected {})",
                         Quoted(name), kVersion, fmt::join(known, ", ")));
    }
  }
}

void DumpReader::CheckShape(std::string_view dataset, Hdf5Type type,
                            const Hdf5Shape& expected) const {
  if (!file_.Exists(dataset)) Refuse(dataset, "is missing");
  const Hdf5DatasetInfo& info = file_.dataset(dataset);
  bool equal = info.type == type && info.shape.size() == expected.size();
  for (size_t i = 0; equal && i < expected.size(); ++i)
    equal = expected[i] == -1 || expected[i] == info.shape[i];
  if (!equal) {
    Refuse(dataset, fmt::format("expected {} [{}], found {} [{}]", Hdf5TypeName(type),
                                fmt::join(expected, ", "), Hdf5TypeName(info.type),
                                fmt::join(info.shape, ", ")));
  }
}

DumpOrigin DumpReader::ReadOrigin() const {
  if (!file_.HasAttribute("/", kFormatAttribute) ||
      file_.StringAttribute("/", kFormatAttribute) != kFormat) {
    Refuse("/",
           fmt::format("the attribute {} = {} is missing, so this is not a dump of oscar-capture",
                       kFormatAttribute, Quoted(kFormat)));
  }
  const int64_t version = file_.IntAttribute("/", kVersionAttribute);
  if (version == 1) {
    Refuse("/",
           fmt::format(
               "{} is 1; such dumps store neither the rotary embedding of their keys (rope) nor "
               "which other layers read them, so fits would differ from the model's; capture again",
               kVersionAttribute));
  }
  if (version == 2) {
    Refuse("/", fmt::format("{} is 2; such dumps do not store their number of layers, so a missing "
                            "layer would not be noticed; capture again",
                            kVersionAttribute));
  }
  if (version != kVersion) {
    Refuse(
        "/",
        fmt::format(
            "{} is {}, but this program reads {}; capture again, or use the program that wrote it",
            kVersionAttribute, version, kVersion));
  }
  return {.format = fmt::format("{} {}", kFormat, version),
          .model = file_.StringAttribute("/", kModel),
          .model_digest = file_.StringAttribute("/", kModelDigest),
          .tokenizer_digest = file_.StringAttribute("/", kTokenizerDigest),
          .data_digest = file_.StringAttribute("/", kDataDigest),
          .tool_version = file_.StringAttribute("/", kToolVersion)};
}

void DumpReader::ReadSequences() {
  CheckShape(kInputIds, Hdf5Type::kInt32, {-1});
  CheckShape(kSequenceOffsets, Hdf5Type::kInt64, {-1});
  ids_ = file_.Read<int32_t>(kInputIds, {-1});
  const auto offsets = file_.Read<int64_t>(kSequenceOffsets, {-1});
  if (offsets.size() < 2 || offsets.front() != 0) {
    Refuse(kSequenceOffsets, "expected 0, then the end of each sequence");
  }
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] <= offsets[i - 1]) {
      Refuse(kSequenceOffsets, fmt::format("entry {} is {} after {}; every sequence must have at "
                                           "least one token",
                                           i, offsets[i], offsets[i - 1]));
    }
    lengths_.push_back(offsets[i] - offsets[i - 1]);
    longest_ = std::max(longest_, lengths_.back());
  }
  if (offsets.back() != static_cast<int64_t>(ids_.size())) {
    Refuse(kSequenceOffsets, fmt::format("ends at token {}, but {} holds {} tokens", offsets.back(),
                                         kInputIds, ids_.size()));
  }
  const auto negative = std::find_if(ids_.begin(), ids_.end(), [](int32_t id) { return id < 0; });
  if (negative != ids_.end()) {
    Refuse(kInputIds, fmt::format("token {} has id {}, expected at least 0",
                                  negative - ids_.begin(), *negative));
  }
  if (file_.Exists(kDomains)) {
    const auto count = static_cast<int64_t>(lengths_.size());
    CheckShape(kDomains, Hdf5Type::kInt32, {count});
    domains_ = file_.Read<int32_t>(kDomains, {count});
  }
  if (!file_.Exists(kCounted)) return;
  const auto tokens = static_cast<int64_t>(ids_.size());
  CheckShape(kCounted, Hdf5Type::kUInt8, {tokens});
  counted_ = file_.Read<uint8_t>(kCounted, {tokens});
  if (std::ranges::any_of(counted_, [](uint8_t value) { return value > 1; }))
    Refuse(kCounted, "contains values other than 0 and 1");
}

std::vector<int> DumpReader::LayerIds(std::string_view group) const {
  if (!file_.IsGroup(group)) Refuse(group, "expected a group with one member per layer");
  std::vector<int> ids;
  for (const std::string& name : file_.Children(group)) {
    const std::optional<int> id = ParseLayerId(name);
    if (!id || !file_.IsGroup(fmt::format("{}/{}", group, name))) {
      Refuse(group,
             fmt::format("contains {}, expected groups named by layer numbers", Quoted(name)));
    }
    ids.push_back(*id);
  }
  if (ids.empty()) Refuse(group, "contains no layers");
  std::sort(ids.begin(), ids.end());
  return ids;
}

DumpLayer DumpReader::ReadLayer(int layer_id) const {
  const std::string group = LayerPath(layer_id);
  CheckNames(group, std::array{DumpTensorName(DumpTensor::kQ), DumpTensorName(DumpTensor::kK),
                               DumpTensorName(DumpTensor::kV), DumpTensorName(DumpTensor::kAttnOut),
                               DumpTensorName(DumpTensor::kCKv), DumpTensorName(DumpTensor::kKPe),
                               kLse, kScoreRows, kScores, kSinks, kKvB, kReadBy});
  const std::string kind = file_.StringAttribute(group, kKind);
  if (kind != kKindGqa && kind != kKindMla) {
    Refuse(group, fmt::format("{} is {}, but this program reads {} and {}", kKind, Quoted(kind),
                              Quoted(kKindGqa), Quoted(kKindMla)));
  }
  DumpLayer layer;
  layer.layer_id = layer_id;
  layer.num_q_heads = file_.IntAttribute(group, kNumQHeads);
  layer.num_kv_heads = file_.IntAttribute(group, kNumKvHeads);
  layer.head_dim = file_.IntAttribute(group, kHeadDim);
  layer.v_head_dim = file_.IntAttribute(group, kVHeadDim);
  if (kind == kKindMla) {
    layer.latent_rank = file_.IntAttribute(group, kLatentRank);
    layer.rope_dim = file_.IntAttribute(group, kRopeDim);
    if (layer.latent_rank < 1) Refuse(group, fmt::format("{} must be above 0", kLatentRank));
  } else if (file_.Exists(LayerPath(layer_id, DumpTensorName(DumpTensor::kCKv))) ||
             file_.Exists(LayerPath(layer_id, DumpTensorName(DumpTensor::kKPe)))) {
    Refuse(group, fmt::format("{} is {}, but the layer has latents", kKind, Quoted(kind)));
  }
  layer.scale = file_.DoubleAttribute(group, kScale);
  layer.softcap = file_.DoubleAttribute(group, kSoftcap);
  if (const int64_t window = file_.IntAttribute(group, kWindow); window != 0) layer.window = window;
  layer.facts = ReadFacts(group);

  const std::string queries = LayerPath(layer_id, DumpTensorName(DumpTensor::kQ));
  if (!file_.Exists(queries)) Refuse(queries, "is missing");
  const Hdf5Type stored = file_.dataset(queries).type;
  switch (stored) {
    case Hdf5Type::kUInt16:
      layer.dtype = DType::kBF16;
      break;
    case Hdf5Type::kFloat16:
      layer.dtype = DType::kF16;
      break;
    case Hdf5Type::kFloat32:
      layer.dtype = DType::kF32;
      break;
    default:
      Refuse(queries, fmt::format("has {} values, expected float32, float16, or bfloat16 as uint16",
                                  Hdf5TypeName(stored)));
  }
  CheckDumpLayer(layer, name_ + ": " + group);
  if (const std::string sinks = LayerPath(layer_id, kSinks); file_.Exists(sinks)) {
    layer.sinks = file_.Read<float>(sinks, {layer.num_q_heads});
    CheckDumpLayer(layer, name_ + ": " + group);
  }
  const auto tokens = static_cast<int64_t>(ids_.size());
  for (const DumpTensor tensor : layer.tensors()) {
    CheckStoredType(layer, LayerPath(layer_id, DumpTensorName(tensor)),
                    layer.shape(tensor, tokens));
  }
  const std::string kv_b = LayerPath(layer_id, kKvB);
  if (layer.latent()) {
    CheckStoredType(layer, kv_b, layer.kv_b_shape());
  } else if (file_.Exists(kv_b)) {
    Refuse(kv_b, fmt::format("does not belong in a layer of kind {}", Quoted(kKindGqa)));
  }
  if (file_.Exists(LayerPath(layer_id, kReadBy))) {
    layer.readers = ReadReaders(layer);
    CheckDumpLayer(layer, name_ + ": " + group);
  }
  return layer;
}

DumpModelFacts DumpReader::ReadFacts(std::string_view group) const {
  const int64_t qk_norm = file_.IntAttribute(group, kQkNorm);
  if (qk_norm != 0 && qk_norm != 1)
    Refuse(group, fmt::format("{} is {}, expected 0 or 1", kQkNorm, qk_norm));
  return {.rope = file_.StringAttribute(group, kRope),
          .qk_norm = qk_norm == 1,
          .not_foldable = file_.StringAttribute(group, kNotFoldable)};
}

std::vector<CacheReader> DumpReader::ReadReaders(const DumpLayer& layer) const {
  const auto tokens = static_cast<int64_t>(ids_.size());
  std::vector<CacheReader> readers;
  for (const int id : LayerIds(LayerPath(layer.layer_id, kReadBy))) {
    const std::string group = ReaderPath(layer.layer_id, id);
    CheckNames(group,
               std::array{DumpTensorName(DumpTensor::kQ), DumpTensorName(DumpTensor::kAttnOut)});
    const std::string queries = fmt::format("{}/{}", group, DumpTensorName(DumpTensor::kQ));
    if (!file_.Exists(queries)) Refuse(queries, "is missing");
    const Hdf5Shape& shape = file_.dataset(queries).shape;
    readers.push_back({id, shape.size() == 3 ? shape[1] : 0});
    for (const DumpTensor tensor : kReaderTensors) {
      CheckStoredType(layer, fmt::format("{}/{}", group, DumpTensorName(tensor)),
                      layer.Reader(readers.back()).shape(tensor, tokens));
    }
  }
  return readers;
}

void DumpReader::CheckStoredType(const DumpLayer& layer, const std::string& dataset,
                                 const Hdf5Shape& shape) const {
  const std::string queries = LayerPath(layer.layer_id, DumpTensorName(DumpTensor::kQ));
  CheckShape(dataset, file_.dataset(queries).type, shape);
  const bool named = file_.HasAttribute(dataset, kDtype);
  if (named != (layer.dtype == DType::kBF16) ||
      (named && file_.StringAttribute(dataset, kDtype) != kDtypeBf16)) {
    Refuse(dataset,
           fmt::format("the attribute {} = {} must be set on uint16 datasets and nowhere else",
                       kDtype, Quoted(kDtypeBf16)));
  }
}

void DumpReader::ReadScoreRows(const DumpLayer& layer) {
  const std::string rows_name = LayerPath(layer.layer_id, kScoreRows);
  const std::string scores = LayerPath(layer.layer_id, kScores);
  const std::string lse = LayerPath(layer.layer_id, kLse);
  const bool first = &layer == &layers_.front(), scored = file_.Exists(rows_name);
  if (file_.Exists(scores) != scored || file_.Exists(lse) != scored ||
      (!first && scored == score_rows_.empty())) {
    Refuse(LayerPath(layer.layer_id),
           fmt::format("{}, {} and {} must all be present in every layer or in no layer", kLse,
                       kScoreRows, kScores));
  }
  if (!scored) return;
  const auto tokens = static_cast<int64_t>(ids_.size());
  CheckShape(rows_name, Hdf5Type::kInt64, {-1});
  std::vector<int64_t> rows = file_.Read<int64_t>(rows_name, {-1});
  int64_t previous = -1;
  for (const int64_t row : rows) {
    if (row <= previous || row >= tokens) {
      Refuse(rows_name, fmt::format("token {} comes after {}, expected ascending indices below {}",
                                    row, previous, tokens));
    }
    previous = row;
  }
  if (rows.empty()) Refuse(rows_name, "is empty");
  if (first)
    score_rows_ = std::move(rows);
  else if (rows != score_rows_)
    Refuse(rows_name, "differs from that of the first layer");
  CheckShape(lse, Hdf5Type::kFloat32, {tokens, layer.num_q_heads});
  CheckShape(scores, Hdf5Type::kFloat32,
             {static_cast<int64_t>(score_rows_.size()), layer.num_q_heads, longest_});
}

void DumpReader::ReadRows(size_t layer_index, DumpTensor tensor, int64_t first_token,
                          std::span<std::byte> out) const {
  const DumpLayer& layer = layers_.at(layer_index);
  ReadHeads(layer, tensor, LayerPath(layer.layer_id, DumpTensorName(tensor)), first_token, out);
}

void DumpReader::ReadReaderRows(size_t layer_index, size_t reader, DumpTensor tensor,
                                int64_t first_token, std::span<std::byte> out) const {
  const DumpLayer& source = layers_.at(layer_index);
  const CacheReader& own = source.readers.at(reader);
  ReadHeads(source.Reader(own), tensor,
            fmt::format("{}/{}", ReaderPath(source.layer_id, own.layer_id), DumpTensorName(tensor)),
            first_token, out);
}

void DumpReader::ReadHeads(const DumpLayer& layer, DumpTensor tensor, const std::string& dataset,
                           int64_t first_token, std::span<std::byte> out) const {
  const int64_t heads = layer.heads(tensor), dim = layer.dim(tensor);
  ReadStored(layer, dataset, layer.shape(tensor, static_cast<int64_t>(ids_.size())), first_token,
             out);
  if (const auto bad = FirstNotFinite(layer.dtype, out)) {
    const auto at = static_cast<int64_t>(*bad);
    Refuse(dataset, fmt::format("token {}, head {}, dimension {} is NaN or infinite; capture again "
                                "in float32",
                                first_token + at / (heads * dim), at / dim % heads, at % dim));
  }
}

void DumpReader::ReadKvB(size_t layer_index, std::span<std::byte> out) const {
  const DumpLayer& layer = layers_.at(layer_index);
  const std::string name = LayerPath(layer.layer_id, kKvB);
  ReadStored(layer, name, layer.kv_b_shape(), 0, out);
  if (FirstNotFinite(layer.dtype, out))
    Refuse(name, "a weight is NaN or infinite; capture again in float32");
}

void DumpReader::ReadStored(const DumpLayer& layer, const std::string& dataset,
                            const Hdf5Shape& shape, int64_t first_row,
                            std::span<std::byte> out) const {
  switch (layer.dtype) {
    case DType::kBF16:
      return file_.ReadRows(dataset, shape, first_row, As<uint16_t>(out));
    case DType::kF16:
      return file_.ReadRows(dataset, shape, first_row, As<Float16>(out));
    default:
      return file_.ReadRows(dataset, shape, first_row, As<float>(out));
  }
}

}  // namespace oscar
