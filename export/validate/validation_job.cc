// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/validation_job.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "calib/run/tensor_file.h"

namespace oscar {
namespace {

// Writing the hidden states of all arms can take longer than a fast layer, so it is not done after
// every layer. The pauses between writes make it at most a twentieth of the run time.
constexpr std::chrono::seconds kKeepEvery{10};
constexpr int kTimesWriting = 20;

}  // namespace

ValidationJob::ValidationJob(JobDirectory* job, const ModelSpec& spec, ValidationObserver& observer)
    : job_(job), spec_(spec), observer_(observer) {}

size_t ValidationJob::Resume(std::span<at::Tensor> streams) {
  if (job_ == nullptr || job_->finished_layers() == 0) return 0;
  for (; added_ < job_->finished_layers(); ++added_) observer_.ReadLayer(job_->LayerPath(added_));
  int64_t rows = 0, next = 0;
  for (const at::Tensor& stream : streams) rows += stream.size(0);
  const at::Tensor all = at::empty({rows, streams[0].size(1)}, streams[0].scalar_type());
  ReadTensors(job_->HiddenPath().value(), {{"hidden", all}}, Remedy::kStartOver);
  for (at::Tensor& stream : streams) {  // one stream after the other
    stream.copy_(all.narrow(0, next, stream.size(0)));
    next += stream.size(0);
  }
  return added_;
}

// Whether a run may resume after this layer. It may not if later layers read keys and values of
// earlier layers, or if an arm needs the rows that its cache returned in the previous layer.
bool ValidationJob::CanStartAfter(size_t layer_index) const {
  if (layer_index + 1 >= spec_.layers.size() || observer_.ReadsLayerBefore()) return false;
  const int next = spec_.layers[layer_index + 1].layer_id;
  return std::ranges::none_of(spec_.uncached, [&](const LayerSpec& layer) {
    return layer.attention.shared_kv && layer.layer_id >= next && *layer.attention.shared_kv < next;
  });
}

void ValidationJob::AfterLayer(size_t layer_index, std::span<const at::Tensor> streams,
                               bool stopping) {
  const auto began = Clock::now();
  if (job_ == nullptr || (!stopping && began < next_)) return;
  if (!CanStartAfter(layer_index)) return;
  for (; added_ <= layer_index; ++added_) {
    job_->AddLayer([&](const std::filesystem::path& path) { observer_.WriteLayer(path, added_); },
                   nullptr);
  }
  job_->Commit([&](const std::filesystem::path& path) {
    std::vector<at::Tensor> host;  // a GPU may have no room for a second copy
    for (const at::Tensor& stream : streams) host.push_back(stream.cpu());
    WriteTensors(path, {{"hidden", at::cat(host)}});
  });
  const auto ended = Clock::now();
  next_ = ended + std::max<Clock::duration>(kKeepEvery, kTimesWriting * (ended - began));
}

}  // namespace oscar
