// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the moments file of OSCAR's start-up calibrator (October tree,
// python/sglang/srt/mem_cache/oscar_calibration.py, save_moments), which is the input of
// rotation/tools/fit_oscar2_variants.py. It is oscar_moments_rank0.pt, for a single rank, in
// float64. M_q is a mean over tokens and query heads, k_sum and M_k are sums, and S_v is the mean
// of the diagonal target. q_scaling and rho (overlap of query heads) are None, which means unknown
// in upstream's files.
#include <fmt/format.h>

#include <span>

#include "calib/moments/moments_file.h"
#include "capture/files/atomic_file.h"
#include "export/artifact/artifact_format.h"
#include "export/formats/pt/pt_writer.h"
#include "export/formats/sglang.h"  // ShellWord
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kMomentsPt = "oscar_moments_rank0.pt";

struct UpstreamMoments {
  std::vector<double> m_q, s_v;  // means
  LayerMoments sums;
};

UpstreamMoments MeansOf(LayerMoments moments, const std::string& where) {
  if (moments.key.empty() || moments.key_sum.empty() || moments.diagonal.empty()) {
    throw InputError(fmt::format(
        "{}: layer {}: these moments lack {}; use --to safetensors to write rotations", where,
        moments.layer_id,
        moments.diagonal.empty()
            ? "values of the diagonal target, which OSCAR's own fit needs and a merge drops"
            : "sums of keys, which rotation files do not contain"));
  }
  UpstreamMoments out;
  const double rows = static_cast<double>(moments.queries() * moments.gqa_ratio());
  for (const double sum : moments.query) out.m_q.push_back(sum / rows);
  const size_t of_head = moments.diagonal.size() / moments.diagonal_weight.size();
  for (size_t i = 0; i < moments.diagonal.size(); ++i)
    out.s_v.push_back(moments.diagonal[i] / moments.diagonal_weight[i / of_head]);
  out.sums = std::move(moments);
  return out;
}

PtOut Tensor64(std::vector<int64_t> shape, const std::vector<double>& values) {
  return TensorBytes{DType::kF64, std::move(shape), std::as_bytes(std::span(values))};
}

}  // namespace

void WriteUpstreamMomentsFiles(const Artifact& artifact, const ExportRequest&,
                               const fs::path& output) {
  const std::string where = artifact.directory().string();
  if (artifact.imported())
    throw InputError(
        where +
        ": was imported from files without moments; use --to safetensors to write their contents");
  const MomentsReader reader(artifact.directory() / kMomentsFile);
  std::vector<UpstreamMoments> layers;
  for (const int id : artifact.layer_ids()) layers.push_back(MeansOf(reader.Read(id), where));
  const LayerMoments& first = layers.front().sums;
  PtOutDict entries;
  for (const UpstreamMoments& layer : layers) {
    const LayerMoments& sums = layer.sums;
    const int64_t heads = sums.num_kv_heads, d = sums.head_dim, dv = sums.v_head_dim;
    if (heads != first.num_kv_heads || d != first.head_dim || dv != first.v_head_dim ||
        sums.num_q_heads != first.num_q_heads || sums.tokens != first.tokens) {
      throw InputError(
          fmt::format("{}: layer {} differs from layer {} in heads, head size or tokens, but the "
                      "file stores these only once; use --to safetensors to write the rotations",
                      where, sums.layer_id, first.layer_id));
    }
    entries.emplace_back(int64_t{sums.layer_id},
                         PtOutDict{{PtKey("M_q"), Tensor64({heads, d, d}, layer.m_q)},
                                   {PtKey("k_sum"), Tensor64({heads, d}, sums.key_sum)},
                                   {PtKey("M_k"), Tensor64({heads, d, d}, sums.key)},
                                   {PtKey("S_v"), Tensor64({heads, dv, dv}, layer.s_v)},
                                   {PtKey("rho"), PtNone()},
                                   {PtKey("q_scaling"), PtNone()},
                                   {PtKey("count"), sums.tokens}});
  }
  const Json model = artifact.manifest().value("model", Json::object());
  const auto text = [&](const char* key) -> PtOut {
    const Json value = model.value(key, Json());
    if (!value.is_string() || value.get<std::string>().empty()) return PtNone();
    return value.get<std::string>();
  };
  AtomicDirectory directory(output);
  WritePt(directory.staging() / kMomentsPt,
          PtOutDict{{PtKey("format_version"), int64_t{2}},
                    {PtKey("model_path"), text("id")},
                    {PtKey("model_revision"), text("revision")},
                    {PtKey("prompt_sha256"), PtNone()},
                    {PtKey("tokens"), first.tokens},
                    {PtKey("tp_rank"), int64_t{0}},
                    {PtKey("tp_size"), int64_t{1}},
                    {PtKey("local_kv_heads"), first.num_kv_heads},
                    {PtKey("global_kv_heads"), first.num_kv_heads},
                    {PtKey("global_q_heads"), first.num_q_heads},
                    {PtKey("head_dim"), first.head_dim},
                    {PtKey("v_head_dim"), first.v_head_dim},
                    {PtKey("layers"), std::move(entries)}},
          "oscar_moments_rank0");
  (void)OpenRotationFile(directory.staging() / kMomentsPt);
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      fmt::format(
          "#!/bin/sh\n"
          "# Fits OSCAR-2's variants to the moments in this directory, of {}, with the\n"
          "# October tree of github.com/FutureMLS-Lab/OSCAR. Sums of attention outputs and\n"
          "# overlaps of query heads are not in the file.\n"
          "python rotation/tools/fit_oscar2_variants.py --moments-dir {} --out VARIANTS "
          "--variants perhead,center,flat\n",
          ShellWord(LaunchModel(artifact.manifest())), ShellWord(fs::absolute(output).string())));
  directory.Commit();
}

}  // namespace oscar
