// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/layer_pipeline.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <malloc.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "calib/job/layer_file.h"
#include "calib/run/hidden_file.h"
#include "calib/run/process_layer.h"
#include "capture/checkpoint/weight_storage.h"
#include "capture/model/layer_weights.h"

namespace oscar {
namespace {

// Of one layer and those without a cache that run with it, from disk.
uint64_t BytesRead(const CalibrationInput& input, size_t layer_index) {
  uint64_t bytes = 0;
  if (const ModelSource* model = input.model()) {
    const LayerLoop& loop = model->loop();
    const std::vector<const LayerSpec*> layers =
        LayersToRun(loop.spec(), {.first_layer = layer_index,
                                  .last_attention_only = !loop.options().need_final_hidden,
                                  .shared_queries = loop.options().shared_queries});
    const int own = model->layers()[layer_index].layer_id;
    for (const LayerSpec* layer : layers) {
      if (layer->has_cache() && layer->layer_id > own) break;
      const bool attention_only = !loop.options().need_final_hidden && layer == layers.back();
      for (const TensorNeed& need : LayerTensors(*layer, attention_only))
        bytes += FindWeightStorage(loop.checkpoint(), need.name).bytes();
    }
  } else if (const auto* dump = dynamic_cast<const DumpSource*>(input.source.get())) {
    bytes = dump->BytesRead(layer_index);
  }
  return bytes;
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Bytes of weights for each byte of hidden states, which take the disk from them.
constexpr uint64_t kWeightsPerHidden = 20;

// Results that wait for the disk, while it takes hidden states.
constexpr size_t kUnwritten = 8;

template <typename T>
bool IsReady(const std::shared_future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

struct LayerPipeline::Layer {
  size_t index = 0;
  LayerOnDevice observed;
  bool commit = false;
  at::Tensor hidden;                   // to be written at the commit; undefined: none is
  std::optional<c10::Event> launched;  // everything above
  LayerResult result;
};

LayerPipeline::LayerPipeline(const CalibrationInput& input, const HeldOutSplit& split,
                             JobDirectory& job, const CalibrationHooks& hooks, PhaseTimes& times)
    : input_(input), split_(split), job_(job), hooks_(hooks), times_(times) {
  if (input.device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl device(input.device.type());
  for (int i = 0; i < input.run.fits_beside; ++i)
    streams_.push_back(device.getStreamFromGlobalPool(input.device, /*isHighPriority=*/true));
}

LayerPipeline::~LayerPipeline() {
  if (written_.valid()) written_.wait();
}

void LayerPipeline::Put(size_t index, LayerOnDevice observed, Commit commit) {
  const auto layer = std::make_shared<Layer>();
  layer->index = index;
  layer->observed = std::move(observed);
  while (!fitting_.empty() &&
         (fitting_.size() >= streams_.size() || IsReady(fitting_.front().fitted)))
    Collect();
  const bool last = index + 1 == input_.source->layers().size();
  read_since_commit_ += BytesRead(input_, index);
  layer->commit = commit == Commit::kNow || last ||
                  (commit == Commit::kIfDue && (input_.device.is_cpu() || IsCommitDue()));
  if (layer->commit) {
    last_commit_ = Clock::now();
    read_since_commit_ = 0;
  }
  if (const ModelSource* model = input_.model(); layer->commit && !last && model != nullptr)
    layer->hidden = KeepHidden(model->hidden());
  if (streams_.empty()) {
    Fit(layer, std::nullopt);
    Write(*layer);
    Report(*layer);
    return;
  }
  const c10::Stream stream = streams_[index % streams_.size()];
  layer->launched.emplace(input_.device.type());
  layer->launched->record(
      c10::impl::VirtualGuardImpl(input_.device.type()).getStream(input_.device));
  layer->observed.RecordStream(stream);
  std::shared_future<std::shared_ptr<Layer>> fitted =
      std::async(std::launch::async, [this, layer, stream] { return Fit(layer, stream); }).share();
  // Lets go of what it has waited for: a future keeps its function, and so would the whole chain.
  const auto write = [this, fitted, before = written_]() mutable {
    const std::shared_ptr<Layer> own = std::exchange(fitted, {}).get();
    if (before.valid()) std::exchange(before, {}).get();
    Write(*own);
  };
  written_ = std::async(std::launch::async, write).share();
  if (layer->hidden.defined()) hidden_written_ = written_;
  fitting_.push_back({fitted, written_});
}

bool LayerPipeline::IsCommitDue() const {
  if (hidden_written_.valid() && !IsReady(hidden_written_)) return false;
  const ModelSource* const model = input_.model();
  const uint64_t hidden = model == nullptr ? 0 : model->hidden().nbytes();
  return read_since_commit_ >= kWeightsPerHidden * hidden ||
         SecondsSince(last_commit_) >= input_.run.commit_seconds;
}

// Beside the next layer, which changes them in place, hidden states must be a copy.
at::Tensor LayerPipeline::KeepHidden(const at::Tensor& hidden) {
  if (streams_.empty()) return hidden;
  if (hidden_written_.valid()) hidden_written_.wait();
  if (!host_hidden_.defined()) {
    host_hidden_ = at::empty(hidden.sizes(),
                             at::TensorOptions().dtype(hidden.scalar_type()).pinned_memory(true));
  }
  host_hidden_.copy_(hidden, /*non_blocking=*/true);
  return host_hidden_;
}

std::shared_ptr<LayerPipeline::Layer> LayerPipeline::Fit(const std::shared_ptr<Layer>& layer,
                                                         std::optional<c10::Stream> stream) {
  std::optional<c10::StreamGuard> guard;
  const LayerSpec& spec = input_.source->layers()[layer->index];
  ObservedLayer observed;
  {
    const auto time = times_.Measure("layer awaited");
    if (stream) {
      guard.emplace(*stream);
      layer->launched->block(*stream);
      layer->launched->synchronize();
    } else {
      malloc_trim(0);  // what attention freed, so that its peak and that of the fit do not add up
    }
    observed = ReadBack(std::move(layer->observed), spec);
  }
  layer->result = ProcessLayer(std::move(observed), spec, split_, input_.options, times_);
  if (!stream) malloc_trim(0);  // and the other way round
  return layer;
}

void LayerPipeline::Write(const Layer& layer) {
  {
    const auto time = times_.Measure("layer file");
    const int layer_id = input_.source->layers()[layer.index].layer_id;
    job_.AddLayer([&](const std::filesystem::path& path) { WriteLayerFile(path, layer.result); },
                  {{"layer", layer_id}, {"seconds", SecondsSince(last_write_)}});
  }
  last_write_ = Clock::now();
  if (!layer.commit) return;
  const auto time = times_.Measure("commit");
  std::function<void(const std::filesystem::path&)> write_hidden;
  if (layer.hidden.defined())
    write_hidden = [&](const std::filesystem::path& path) { WriteHidden(path, layer.hidden); };
  job_.Commit(write_hidden);
}

void LayerPipeline::Report(const Layer& layer) {
  if (hooks_.on_layer) {
    hooks_.on_layer({layer.index, input_.source->layers().size(), input_.num_tokens(),
                     SecondsSince(last_report_), BytesRead(input_, layer.index), layer.result});
  }
  last_report_ = Clock::now();
}

void LayerPipeline::Collect() {
  const Pending oldest = fitting_.front();
  fitting_.pop_front();
  {
    const auto time = times_.Measure("fit awaited");
    oldest.fitted.wait();
  }
  {
    const auto time = times_.Measure("layer file awaited");
    for (; collected_.size() >= kUnwritten; collected_.pop_front()) collected_.front().get();
  }
  collected_.push_back(oldest.written);
  Report(*oldest.fitted.get());
}

void LayerPipeline::Finish() {
  while (!fitting_.empty()) Collect();
  for (; !collected_.empty(); collected_.pop_front()) collected_.front().get();
  if (written_.valid()) std::exchange(written_, {}).get();
}

}  // namespace oscar
