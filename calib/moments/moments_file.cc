// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/moments/moments_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "capture/checkpoint/safetensors_header.h"
#include "capture/files/posix_file.h"
#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "capture/model/spec/rope_json.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using Shape = std::vector<int64_t>;

// The sums of a layer by name, with their shapes: one table serves writing and reading.
template <typename Moments, typename Visit>
void ForEachMember(Moments& m, Visit visit) {
  const Shape keys{m.num_kv_heads, m.head_dim, m.head_dim},
      values{m.num_kv_heads, m.v_head_dim, m.v_head_dim};
  visit("query", keys, m.query);
  visit("key", keys, m.key);
  visit("key_sum", Shape{m.num_kv_heads, m.head_dim}, m.key_sum);
  visit("attended_key", keys, m.attended_key);
  visit("attended_key_sum", Shape{m.num_kv_heads, m.head_dim}, m.attended_key_sum);
  visit("attended_key_weight", Shape{m.num_kv_heads}, m.attended_key_weight);
  visit("value", values, m.value);
  visit("attention_output", values, m.attention_output);
  visit("diagonal", values, m.diagonal);
  visit("diagonal_weight", Shape{m.num_kv_heads}, m.diagonal_weight);
  visit("key_abs_max", Shape{m.num_kv_heads, m.head_dim}, m.key_abs_max);
  visit("value_abs_max", Shape{m.num_kv_heads, m.v_head_dim}, m.value_abs_max);
}

// Visits every member that is not a sum: visit(name, integer or text).
template <typename Visit>
void ForEachAttribute(const LayerMoments& m, Visit visit) {
  visit("num_q_heads", m.num_q_heads);
  visit("num_kv_heads", m.num_kv_heads);
  visit("head_dim", m.head_dim);
  visit("v_head_dim", m.v_head_dim);
  visit("tokens", m.tokens);
  if (m.query_tokens >= 0) visit("query_tokens", m.query_tokens);
  visit("latent", int64_t{m.latent});
  if (!m.rope) return;
  visit("rope", RopeToText(*m.rope));
  visit("fold_rotary_dim", m.fold.pairs.rotary_dim);
  visit("fold_interleaved", int64_t{m.fold.pairs.interleaved});
  visit("fold_shared_scales", int64_t{m.fold.shared_scales});
}

std::vector<double> ReadSum(const SafetensorsFile& file, const std::string& name,
                            const Shape& shape) {
  const TensorView view = file.tensor(name);
  if (view.dtype != DType::kF64 || view.shape != shape) {
    throw InputError(fmt::format("{}: tensor {} is {} [{}], expected F64 [{}]",
                                 file.path().string(), name, DTypeName(view.dtype),
                                 fmt::join(view.shape, ", "), fmt::join(shape, ", ")));
  }
  std::vector<double> values(view.data.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

}  // namespace

std::string MomentsName(int layer_id) { return fmt::format("layer.{}", layer_id); }

std::string MomentsFacts(const LayerMoments& moments) {
  Json facts = Json::object();
  ForEachAttribute(moments, [&](const char* key, const auto& value) { facts[key] = value; });
  return facts.dump();
}

void ForEachSum(const LayerMoments& moments,
                const std::function<void(const std::string&, const Shape&,
                                         const std::vector<double>&)>& visit) {
  const std::string layer = MomentsName(moments.layer_id);
  ForEachMember(moments, [&](const char* name, const Shape& shape, const std::vector<double>& sum) {
    if (!sum.empty()) visit(fmt::format("{}.{}", layer, name), shape, sum);
  });
}

LayerMoments ReadMoments(const SafetensorsFile& file, int layer_id, MomentsPart part) {
  const std::string layer = MomentsName(layer_id);
  const auto found = file.metadata().find(layer);
  if (found == file.metadata().end())
    throw InputError(fmt::format("{}: contains no {}", file.path().string(), Quoted(layer)));
  const std::string what = fmt::format("{}: {}", file.path().string(), layer);
  const Json facts = ParseStrictJson(found->second, what, {.max_depth = 4, .max_values = 10'000});
  const auto has = [&](const char* name) { return facts.is_object() && facts.contains(name); };
  const auto number = [&](const char* name) { return JsonInt(facts, name, what); };
  LayerMoments m;
  m.layer_id = layer_id;
  m.num_q_heads = number("num_q_heads");
  m.num_kv_heads = number("num_kv_heads");
  m.head_dim = number("head_dim");
  m.v_head_dim = number("v_head_dim");
  m.tokens = number("tokens");
  if (has("query_tokens")) m.query_tokens = number("query_tokens");
  // These limits keep products of both, and sums over shards, within 64 bits.
  constexpr int64_t kMostHeads = int64_t{1} << 20, kMostTokens = int64_t{1} << 42;
  if (m.num_kv_heads <= 0 || m.num_q_heads <= 0 || m.num_q_heads % m.num_kv_heads != 0 ||
      m.head_dim <= 0 || m.v_head_dim <= 0 || m.tokens <= 0 || m.num_q_heads > kMostHeads ||
      m.tokens > kMostTokens || m.queries() <= 0 || m.queries() > m.tokens) {
    throw InputError(fmt::format(
        "{}: {} query heads, {} KV heads, head_dim {}, v_head_dim {}, {} tokens with {} queries "
        "are not a valid geometry",
        what, m.num_q_heads, m.num_kv_heads, m.head_dim, m.v_head_dim, m.tokens, m.queries()));
  }
  ForEachMember(m, [&](const char* name, const Shape& shape, std::vector<double>& sum) {
    const bool of_means = &sum == &m.key_sum || &sum == &m.key_abs_max || &sum == &m.value_abs_max;
    if (part == MomentsPart::kMeans && !of_means) return;
    const std::string tensor = fmt::format("{}.{}", layer, name);
    if (file.tensors().contains(tensor)) sum = ReadSum(file, tensor, shape);
  });
  if (part == MomentsPart::kMeans) {
    m.CheckFinite();
    return m;
  }
  if (m.query.empty() || m.diagonal.empty() != m.diagonal_weight.empty() ||
      m.attended_key.empty() != m.attended_key_weight.empty() ||
      m.attended_key_sum.empty() != m.attended_key_weight.empty()) {
    throw InputError(what +
                     ": the query sums, the weights of the diagonal target or the weights of "
                     "attended keys are missing");
  }
  m.CheckFinite();
  const bool same = m.head_dim == m.v_head_dim && m.key == m.value;
  m.latent = has("latent") ? number("latent") != 0
                           : same && !m.key.empty();  // older versions: latent if sums are equal
  if (m.latent && !same) {
    throw InputError(what + ": the sums of keys and values differ, but must be equal for latents");
  }
  if (!has("rope")) return m;  // the file is of an older version, or holds rotations
  m.rope = RopeFromText(JsonString(facts, "rope", what), m.head_dim, what);
  m.fold = {.pairs = {.rotary_dim = number("fold_rotary_dim"),
                      .interleaved = number("fold_interleaved") != 0},
            .shared_scales = number("fold_shared_scales") != 0};
  if (const int64_t turned = m.fold.pairs.rotary_dim; turned != 0 && turned != m.rope->rotary_dim) {
    throw InputError(fmt::format("{}: fold_rotary_dim is {}, but there are {} rotary dimensions",
                                 what, turned, m.rope->rotary_dim));
  }
  return m;
}

MomentsWriter::MomentsWriter(const std::filesystem::path& path)
    : path_(path),
      metadata_{{"format", kMomentsFormat}, {"format_version", std::to_string(kMomentsVersion)}} {
  const TemporaryFile sums = CreateTemporarySibling(path);
  descriptor_ = sums.descriptor;
  std::filesystem::remove(sums.path);
}

MomentsWriter::~MomentsWriter() { close(descriptor_); }

void MomentsWriter::Add(const LayerMoments& layer) {
  metadata_[MomentsName(layer.layer_id)] = MomentsFacts(layer);
  if (layer.query_tokens >= 0) metadata_["format_version"] = std::to_string(kMaskedMomentsVersion);
  ForEachSum(layer,
             [&](const std::string& name, const Shape& shape, const std::vector<double>& sum) {
               tensors_.push_back({name, DType::kF64, shape});
               const auto bytes = std::as_bytes(std::span(sum));
               if (const int error = WriteFullyAt(descriptor_, bytes, size_); error != 0)
                 ThrowResource("write", path_, error);
               size_ += bytes.size();
             });
}

void MomentsWriter::Commit() {
  SafetensorsWriter file(path_, tensors_, metadata_);
  uint64_t offset = 0;
  std::vector<std::byte> sum;
  for (const auto& [name, dtype, shape] : tensors_) {
    sum.resize(*TensorBytes(dtype, shape));
    ReadFullyAt(descriptor_, sum, offset, path_);
    file.Write(name, sum);
    offset += sum.size();
  }
  file.Commit();
}

MomentsReader::MomentsReader(MappedFile file) : file_(SafetensorsFile::Open(std::move(file))) {
  const auto said = [&](const char* key) {
    const auto found = file_.metadata().find(key);
    return found == file_.metadata().end() ? std::string() : found->second;
  };
  if (said("format") != kMomentsFormat ||
      (said("format_version") != std::to_string(kMomentsVersion) &&
       said("format_version") != std::to_string(kMaskedMomentsVersion))) {
    throw InputError(fmt::format("{}: format {} version {}, expected '{}' version {} or {}",
                                 file_.path().string(), Quoted(said("format")),
                                 Quoted(said("format_version")), kMomentsFormat, kMomentsVersion,
                                 kMaskedMomentsVersion));
  }
}

LayerMoments MomentsReader::Read(int layer_id) const {
  return ReadMoments(file_, layer_id, MomentsPart::kAll);
}

}  // namespace oscar
