// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/moments/moments_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/model/rope_json.h"
#include "linalg/error.h"

namespace oscar {
namespace {

std::string LayerGroup(int layer_id) { return fmt::format("/layer/{}", layer_id); }

// The sums of a layer by name, with their shapes: one table serves writing and reading.
template <typename Moments, typename Visit>
void ForEachSum(Moments& m, Visit visit) {
  const Hdf5Shape keys{m.num_kv_heads, m.head_dim, m.head_dim},
      values{m.num_kv_heads, m.v_head_dim, m.v_head_dim};
  visit("query", keys, m.query);
  visit("key", keys, m.key);
  visit("key_sum", Hdf5Shape{m.num_kv_heads, m.head_dim}, m.key_sum);
  visit("value", values, m.value);
  visit("attention_output", values, m.attention_output);
  visit("diagonal", values, m.diagonal);
  visit("diagonal_weight", Hdf5Shape{m.num_kv_heads}, m.diagonal_weight);
  visit("key_abs_max", Hdf5Shape{m.num_kv_heads, m.head_dim}, m.key_abs_max);
  visit("value_abs_max", Hdf5Shape{m.num_kv_heads, m.v_head_dim}, m.value_abs_max);
}

}  // namespace

void WriteMoments(Hdf5Writer& file, const std::string& group, const LayerMoments& m) {
  file.CreateGroup(group);
  file.SetAttribute(group, "num_q_heads", m.num_q_heads);
  file.SetAttribute(group, "num_kv_heads", m.num_kv_heads);
  file.SetAttribute(group, "head_dim", m.head_dim);
  file.SetAttribute(group, "v_head_dim", m.v_head_dim);
  file.SetAttribute(group, "tokens", m.tokens);
  file.SetAttribute(group, "latent", int64_t{m.latent});
  if (m.rope) {
    file.SetAttribute(group, "rope", RopeToText(*m.rope));
    file.SetAttribute(group, "fold_rotary_dim", m.fold.pairs.rotary_dim);
    file.SetAttribute(group, "fold_interleaved", int64_t{m.fold.pairs.interleaved});
    file.SetAttribute(group, "fold_shared_scales", int64_t{m.fold.shared_scales});
  }
  ForEachSum(m, [&](const char* name, const Hdf5Shape& shape, const std::vector<double>& sum) {
    if (!sum.empty()) file.Write<double>(group + "/" + name, shape, sum);
  });
}

LayerMoments ReadMoments(const Hdf5Reader& file, const std::string& group, int layer_id,
                         MomentsPart part) {
  LayerMoments m;
  m.layer_id = layer_id;
  m.num_q_heads = file.IntAttribute(group, "num_q_heads");
  m.num_kv_heads = file.IntAttribute(group, "num_kv_heads");
  m.head_dim = file.IntAttribute(group, "head_dim");
  m.v_head_dim = file.IntAttribute(group, "v_head_dim");
  m.tokens = file.IntAttribute(group, "tokens");
  if (m.num_kv_heads <= 0 || m.num_q_heads <= 0 || m.num_q_heads % m.num_kv_heads != 0 ||
      m.head_dim <= 0 || m.v_head_dim <= 0 || m.tokens <= 0) {
    throw InputError(
        fmt::format("{}: {}: {} query heads, {} KV heads, head_dim {}, v_head_dim {}, {} tokens: "
                    "not the geometry of a layer",
                    file.path().string(), group, m.num_q_heads, m.num_kv_heads, m.head_dim,
                    m.v_head_dim, m.tokens));
  }
  ForEachSum(m, [&](const char* name, const Hdf5Shape& shape, std::vector<double>& sum) {
    const bool of_means = &sum == &m.key_sum || &sum == &m.key_abs_max || &sum == &m.value_abs_max;
    if (part == MomentsPart::kMeans && !of_means) return;
    if (file.Exists(group + "/" + name)) sum = file.Read<double>(group + "/" + name, shape);
  });
  if (part == MomentsPart::kMeans) return m;
  if (m.query.empty() || m.diagonal.empty() != m.diagonal_weight.empty()) {
    throw InputError(
        fmt::format("{}: {}: query sums, or the weights of the diagonal target, are missing",
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

MomentsWriter::MomentsWriter(const std::filesystem::path& path) : file_(path) {
  file_.SetAttribute("/", "format", kMomentsFormat);
  file_.SetAttribute("/", "format_version", kMomentsVersion);
}

void MomentsWriter::Add(const LayerMoments& layer) {
  WriteMoments(file_, LayerGroup(layer.layer_id), layer);
}

void MomentsWriter::Commit() { file_.Commit(); }

MomentsReader::MomentsReader(const std::filesystem::path& path) : file_(path) {
  const std::string format = file_.StringAttribute("/", "format");
  const int64_t version = file_.IntAttribute("/", "format_version");
  if (format != kMomentsFormat || version != kMomentsVersion) {
    throw InputError(fmt::format("{}: format '{}' version {}, expected '{}' version {}",
                                 path.string(), format, version, kMomentsFormat, kMomentsVersion));
  }
}

LayerMoments MomentsReader::Read(int layer_id) const {
  return ReadMoments(file_, LayerGroup(layer_id), layer_id);
}

}  // namespace oscar
