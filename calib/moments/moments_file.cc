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

// A layer of a safetensors file, by the calls of Hdf5Reader.
class StoredLayer {
 public:
  StoredLayer(const SafetensorsFile& file, const std::string& layer) : file_(file) {
    const auto found = file.metadata().find(layer);
    if (found == file.metadata().end())
      throw InputError(fmt::format("{}: there is no {}", file.path().string(), Quoted(layer)));
    what_ = fmt::format("{}: {}", file.path().string(), layer);
    attributes_ = ParseStrictJson(found->second, what_, {.max_depth = 4, .max_values = 10'000});
  }
  const std::filesystem::path& path() const { return file_.path(); }
  bool HasAttribute(const std::string&, const char* name) const {
    return attributes_.is_object() && attributes_.contains(name);
  }
  int64_t IntAttribute(const std::string&, const char* name) const {
    return JsonInt(attributes_, name, what_);
  }
  std::string StringAttribute(const std::string&, const char* name) const {
    return JsonString(attributes_, name, what_);
  }
  bool Exists(const std::string& name) const { return file_.tensors().contains(name); }
  template <typename T>
  std::vector<T> Read(const std::string& name, const std::vector<int64_t>& shape) const {
    const TensorView view = file_.tensor(name);
    if (view.dtype != DType::kF64 || view.shape != shape) {
      throw InputError(fmt::format("{}: tensor {} is {} [{}], expected F64 [{}]",
                                   file_.path().string(), name, DTypeName(view.dtype),
                                   fmt::join(view.shape, ", "), fmt::join(shape, ", ")));
    }
    std::vector<T> values(view.data.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), view.data.data(), view.data.size());
    return values;
  }

 private:
  const SafetensorsFile& file_;
  std::string what_;
  Json attributes_;
};

std::string LayerName(int layer_id) { return fmt::format("layer.{}", layer_id); }

// The sums of a layer by name, with their shapes: one table serves writing and reading.
template <typename Moments, typename Visit>
void ForEachSum(Moments& m, Visit visit) {
  const Hdf5Shape keys{m.num_kv_heads, m.head_dim, m.head_dim},
      values{m.num_kv_heads, m.v_head_dim, m.v_head_dim};
  visit("query", keys, m.query);
  visit("key", keys, m.key);
  visit("key_sum", Hdf5Shape{m.num_kv_heads, m.head_dim}, m.key_sum);
  visit("attended_key", keys, m.attended_key);
  visit("attended_key_sum", Hdf5Shape{m.num_kv_heads, m.head_dim}, m.attended_key_sum);
  visit("attended_key_weight", Hdf5Shape{m.num_kv_heads}, m.attended_key_weight);
  visit("value", values, m.value);
  visit("attention_output", values, m.attention_output);
  visit("diagonal", values, m.diagonal);
  visit("diagonal_weight", Hdf5Shape{m.num_kv_heads}, m.diagonal_weight);
  visit("key_abs_max", Hdf5Shape{m.num_kv_heads, m.head_dim}, m.key_abs_max);
  visit("value_abs_max", Hdf5Shape{m.num_kv_heads, m.v_head_dim}, m.value_abs_max);
}

// What is no sum; visit(name, integer or text).
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

// `prefix` and the name of a sum are what it is stored as.
template <typename File>
LayerMoments ReadFrom(const File& file, const std::string& group, const std::string& prefix,
                      int layer_id, MomentsPart part) {
  LayerMoments m;
  m.layer_id = layer_id;
  m.num_q_heads = file.IntAttribute(group, "num_q_heads");
  m.num_kv_heads = file.IntAttribute(group, "num_kv_heads");
  m.head_dim = file.IntAttribute(group, "head_dim");
  m.v_head_dim = file.IntAttribute(group, "v_head_dim");
  m.tokens = file.IntAttribute(group, "tokens");
  if (file.HasAttribute(group, "query_tokens"))
    m.query_tokens = file.IntAttribute(group, "query_tokens");
  // Products of both are counted in 64 bits, and sums of shards are.
  constexpr int64_t kMostHeads = int64_t{1} << 20, kMostTokens = int64_t{1} << 42;
  if (m.num_kv_heads <= 0 || m.num_q_heads <= 0 || m.num_q_heads % m.num_kv_heads != 0 ||
      m.head_dim <= 0 || m.v_head_dim <= 0 || m.tokens <= 0 || m.num_q_heads > kMostHeads ||
      m.tokens > kMostTokens || m.queries() <= 0 || m.queries() > m.tokens) {
    throw InputError(
        fmt::format("{}: {}: {} query heads, {} KV heads, head_dim {}, v_head_dim {}, {} tokens "
                    "with {} queries: not the geometry of a layer",
                    file.path().string(), group, m.num_q_heads, m.num_kv_heads, m.head_dim,
                    m.v_head_dim, m.tokens, m.queries()));
  }
  ForEachSum(m, [&](const char* name, const Hdf5Shape& shape, std::vector<double>& sum) {
    const bool of_means = &sum == &m.key_sum || &sum == &m.key_abs_max || &sum == &m.value_abs_max;
    if (part == MomentsPart::kMeans && !of_means) return;
    if (file.Exists(prefix + name)) sum = file.template Read<double>(prefix + name, shape);
  });
  if (part == MomentsPart::kMeans) {
    m.CheckFinite();
    return m;
  }
  if (m.query.empty() || m.diagonal.empty() != m.diagonal_weight.empty() ||
      m.attended_key.empty() != m.attended_key_weight.empty() ||
      m.attended_key_sum.empty() != m.attended_key_weight.empty()) {
    throw InputError(
        fmt::format("{}: {}: query sums, or the weights of the diagonal target or of attended "
                    "keys, are missing",
                    file.path().string(), group));
  }
  m.CheckFinite();
  const bool same = m.head_dim == m.v_head_dim && m.key == m.value;
  m.latent = file.HasAttribute(group, "latent")
                 ? file.IntAttribute(group, "latent") != 0
                 : same && !m.key.empty();  // an older version's: sums over the same rows
  if (m.latent && !same) {
    throw InputError(fmt::format("{}: {}: latents whose sums of keys and of values differ",
                                 file.path().string(), group));
  }
  if (!file.HasAttribute(group, "rope")) return m;  // an older version's, or a rotation file's
  m.rope = RopeFromText(file.StringAttribute(group, "rope"), m.head_dim,
                        fmt::format("{}: {}", file.path().string(), group));
  m.fold = {.pairs = {.rotary_dim = file.IntAttribute(group, "fold_rotary_dim"),
                      .interleaved = file.IntAttribute(group, "fold_interleaved") != 0},
            .shared_scales = file.IntAttribute(group, "fold_shared_scales") != 0};
  if (const int64_t turned = m.fold.pairs.rotary_dim; turned != 0 && turned != m.rope->rotary_dim) {
    throw InputError(fmt::format("{}: {}: fold_rotary_dim {}, where {} dimensions turn",
                                 file.path().string(), group, turned, m.rope->rotary_dim));
  }
  return m;
}

}  // namespace

void WriteMoments(Hdf5Writer& file, const std::string& group, const LayerMoments& m) {
  file.CreateGroup(group);
  ForEachAttribute(
      m, [&](const char* name, const auto& value) { file.SetAttribute(group, name, value); });
  ForEachSum(m, [&](const char* name, const Hdf5Shape& shape, const std::vector<double>& sum) {
    if (!sum.empty()) file.Write<double>(group + "/" + name, shape, sum);
  });
}

LayerMoments ReadMoments(const Hdf5Reader& file, const std::string& group, int layer_id,
                         MomentsPart part) {
  return ReadFrom(file, group, group + "/", layer_id, part);
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
  const std::string name = LayerName(layer.layer_id);
  Json attributes = Json::object();
  ForEachAttribute(layer, [&](const char* key, const auto& value) { attributes[key] = value; });
  metadata_[name] = attributes.dump();
  if (layer.query_tokens >= 0) metadata_["format_version"] = std::to_string(kMaskedMomentsVersion);
  ForEachSum(layer, [&](const char* key, const Hdf5Shape& shape, const std::vector<double>& sum) {
    if (sum.empty()) return;
    tensors_.push_back({fmt::format("{}.{}", name, key), DType::kF64, shape});
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
  const std::string name = LayerName(layer_id);
  return ReadFrom(StoredLayer(file_, name), name, name + ".", layer_id, MomentsPart::kAll);
}

}  // namespace oscar
