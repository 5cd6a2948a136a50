// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See moments_file.h.
#include "calib/moments_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "linalg/error.h"

namespace oscar {
namespace {

std::string LayerGroup(int layer_id) { return fmt::format("/layer/{}", layer_id); }

void WriteSum(Hdf5Writer& file, const std::string& group, const char* name, const Hdf5Shape& shape,
              const std::vector<double>& sum) {
  file.Write<double>(group + "/" + name, shape, sum);
}

}  // namespace

void WriteMoments(Hdf5Writer& file, const std::string& group, const LayerMoments& m) {
  file.CreateGroup(group);
  file.SetAttribute(group, "num_q_heads", m.num_q_heads);
  file.SetAttribute(group, "num_kv_heads", m.num_kv_heads);
  file.SetAttribute(group, "head_dim", m.head_dim);
  file.SetAttribute(group, "v_head_dim", m.v_head_dim);
  file.SetAttribute(group, "tokens", m.tokens);
  const Hdf5Shape keys{m.num_kv_heads, m.head_dim, m.head_dim},
      values{m.num_kv_heads, m.v_head_dim, m.v_head_dim};
  WriteSum(file, group, "query", keys, m.query);
  WriteSum(file, group, "key", keys, m.key);
  WriteSum(file, group, "key_sum", {m.num_kv_heads, m.head_dim}, m.key_sum);
  WriteSum(file, group, "value", values, m.value);
  WriteSum(file, group, "attention_output", values, m.attention_output);
  if (m.has_diagonal()) {
    WriteSum(file, group, "diagonal", values, m.diagonal);
    WriteSum(file, group, "diagonal_weight", {m.num_kv_heads}, m.diagonal_weight);
  }
}

LayerMoments ReadMoments(const Hdf5Reader& file, const std::string& group, int layer_id) {
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
  const Hdf5Shape keys{m.num_kv_heads, m.head_dim, m.head_dim},
      values{m.num_kv_heads, m.v_head_dim, m.v_head_dim};
  m.query = file.Read<double>(group + "/query", keys);
  m.key = file.Read<double>(group + "/key", keys);
  m.key_sum = file.Read<double>(group + "/key_sum", {m.num_kv_heads, m.head_dim});
  m.value = file.Read<double>(group + "/value", values);
  m.attention_output = file.Read<double>(group + "/attention_output", values);
  if (file.Exists(group + "/diagonal")) {
    m.diagonal = file.Read<double>(group + "/diagonal", values);
    m.diagonal_weight = file.Read<double>(group + "/diagonal_weight", {m.num_kv_heads});
  }
  m.CheckFinite();
  return m;
}

MomentsWriter::MomentsWriter(const std::filesystem::path& path)
    : file_(path, Hdf5Writer::Mode::kAtomic) {
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

std::vector<int> MomentsReader::layer_ids() const {
  std::vector<int> ids;
  for (const std::string& name : file_.Children("/layer")) {
    int id = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || end != name.data() + name.size() || id < 0) {
      throw InputError(fmt::format("{}: /layer/{} is not a layer id", file_.path().string(), name));
    }
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

LayerMoments MomentsReader::Read(int layer_id) const {
  return ReadMoments(file_, LayerGroup(layer_id), layer_id);
}

}  // namespace oscar
