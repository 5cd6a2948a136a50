// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/dump_observer.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "capture/model/run/attention_scores.h"
#include "capture/model/run/output_head.h"
#include "capture/model/spec/rope_json.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kScoreRowsPerPiece = 64, kLogitRowsPerPiece = 128;

std::span<const std::byte> HostBytes(const at::Tensor& host) {
  return {static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()};
}

std::span<const float> HostFloats(const at::Tensor& host) {
  return {host.const_data_ptr<float>(), static_cast<size_t>(host.numel())};
}

}  // namespace

DumpLayer DumpLayerOf(const LayerSpec& layer, DType dtype) {
  const AttentionSpec& a = layer.attention;
  return {.layer_id = layer.layer_id,
          .num_q_heads = a.num_q_heads,
          .num_kv_heads = a.num_kv_heads,
          .head_dim = a.head_dim,
          .v_head_dim = a.v_head_dim,
          .scale = a.scale,
          .window = a.window,
          .softcap = a.softcap,
          .sinks = a.sink_logits,
          .latent_rank = a.latent ? a.latent->rank : 0,
          .rope_dim = a.latent ? a.latent->rope_dim : 0,
          .dtype = dtype,
          .facts = DumpModelFacts{
              .rope = RopeToText(a.rope), .qk_norm = a.qk_norm, .not_foldable = WhyNotFoldable(a)}};
}

DumpLayer DumpLayerOf(const ModelSpec& spec, const LayerSpec& layer, DType dtype) {
  DumpLayer own = DumpLayerOf(layer, dtype);
  for (const LayerSpec& reader : spec.uncached) {
    if (reader.attention.shared_kv == layer.layer_id)
      own.readers.push_back({reader.layer_id, reader.attention.num_q_heads});
  }
  return own;
}

DType DumpDType(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBFloat16:
      return DType::kBF16;
    case at::kHalf:
      return DType::kF16;
    case at::kFloat:
      return DType::kF32;
    default:
      OSCAR_CHECK(false);
  }
  return {};
}

DumpObserver::DumpObserver(DumpSink& sink, DumpWriter* scores, at::ScalarType dtype)
    : sink_(sink), scores_(scores), dtype_(DumpDType(dtype)) {}

void DumpObserver::OnLayerBegin(const LayerSpec& layer) {
  sink_.BeginLayer(DumpLayerOf(layer, dtype_));
}

void DumpObserver::OnAttention(const AttentionView& view) {
  const DumpLayer layer = DumpLayerOf(view.layer, dtype_);
  for (const DumpTensor tensor : layer.tensors()) WriteTensor(layer, view, tensor);
  if (view.sequence == 0 && layer.latent()) sink_.WriteKvB(HostBytes(view.kv_b.cpu().contiguous()));
  if (scores_ != nullptr) WriteScores(view);
}

void DumpObserver::OnSharedAttention(const AttentionView& view) {
  const DumpLayer reader = DumpLayerOf(view.layer, dtype_);
  if (view.sequence == 0) {
    DumpLayer source = reader;
    source.layer_id = view.layer.attention.shared_kv.value();
    sink_.BeginReader(source, {reader.layer_id, reader.num_q_heads});
  }
  for (const DumpTensor tensor : kReaderTensors) WriteTensor(reader, view, tensor);
}

void DumpObserver::WriteTensor(const DumpLayer& layer, const AttentionView& view,
                               DumpTensor tensor) {
  if (!sink_.wants(tensor)) return;
  const at::Tensor* const values[] = {&view.q,        &view.k,    &view.v,
                                      &view.attn_out, &view.c_kv, &view.k_pe};  // in the order of
                                                                                // DumpTensor
  const at::Tensor host = values[static_cast<size_t>(tensor)]->cpu().contiguous();
  if (const auto bad = FirstNotFinite(dtype_, HostBytes(host))) {
    const int64_t at = static_cast<int64_t>(*bad), dim = layer.dim(tensor),
                  heads = layer.heads(tensor);
    throw NumericalError(
        fmt::format("layer {}: {} of sequence {}, token {}, head {} is NaN or infinite; the "
                    "checkpoint or the compute dtype is at fault",
                    view.layer.layer_id, DumpTensorName(tensor), view.sequence, at / (heads * dim),
                    at / dim % heads),
        Remedy::kWiderFloats);
  }
  sink_.WriteSequence(tensor, view.sequence, HostBytes(host));
}

void DumpObserver::WriteScores(const AttentionView& view) {
  const AttentionSpec& spec = view.layer.attention;
  scores_->WriteLse(view.first_token,
                    HostFloats(LogSumExpRows(spec, view.q, view.k, view.sinks).cpu().contiguous()));
  const std::vector<int64_t>& all = scores_->options().score_rows;
  const int64_t length = view.q.size(0);
  auto from = std::lower_bound(all.begin(), all.end(), view.first_token);
  const auto end = std::lower_bound(from, all.end(), view.first_token + length);
  while (from != end) {
    std::vector<int64_t> rows(from, std::min(end, from + kScoreRowsPerPiece));
    for (int64_t& row : rows) row -= view.first_token;
    const auto count = static_cast<int64_t>(rows.size());
    at::Tensor padded = at::zeros({count, spec.num_q_heads, scores_->longest_sequence()});
    padded.narrow(2, 0, length).copy_(SoftmaxRows(spec, view.q, view.k, rows, view.sinks));
    scores_->WriteScores(from - all.begin(), HostFloats(padded));
    from += count;
  }
}

void DumpObserver::OnLayerEnd(const LayerSpec&) { sink_.EndLayer(); }

void DumpLogits(const ModelSource& model, DumpWriter& writer) {
  const LayerLoop& loop = model.loop();
  OSCAR_CHECK(loop.options().need_final_hidden && model.hidden().defined());
  const OutputHead head(loop.checkpoint(), loop.spec(), {loop.device(), loop.dtype()});
  const int64_t tokens = model.num_tokens();
  for (int64_t begin = 0; begin < tokens; begin += kLogitRowsPerPiece) {
    const int64_t count = std::min(kLogitRowsPerPiece, tokens - begin);
    const at::Tensor logits =
        head.Logits(model.hidden().narrow(0, begin, count)).to(at::kFloat).cpu().contiguous();
    if (const auto bad = FirstNotFinite(DType::kF32, HostBytes(logits))) {
      throw NumericalError(fmt::format("the logits of token {} are NaN or infinite",
                                       begin + static_cast<int64_t>(*bad) / logits.size(1)),
                           Remedy::kWiderFloats);
    }
    writer.WriteLogits(begin, HostFloats(logits));
  }
}

}  // namespace oscar
