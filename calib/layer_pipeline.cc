// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See layer_pipeline.h.
#include "calib/layer_pipeline.h"

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

#include "calib/hidden_file.h"
#include "calib/layer_file.h"
#include "calib/process_layer.h"
#include "capture/checkpoint/weight_storage.h"

namespace oscar {
namespace {

// Of one layer, from disk.
uint64_t BytesRead(const CalibrationInput& input, size_t layer_index) {
  uint64_t bytes = 0;
  if (const ModelSource* model = input.model()) {
    const bool last = layer_index + 1 == model->layers().size();
    for (const TensorNeed& need : LayerTensors(model->layers()[layer_index], last))
      bytes += FindWeightStorage(model->loop().checkpoint(), need.name).bytes();
  } else if (const auto* dump = dynamic_cast<const DumpSource*>(input.source.get())) {
    bytes = dump->BytesRead(layer_index);
  }
  return bytes;
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

struct LayerPipeline::Layer {
  size_t index = 0;
  LayerOnDevice observed;
  bool commit = false;
  at::Tensor hidden;                   // to be written at the commit; undefined: none is
  std::optional<c10::Event> launched;  // everything above
  LayerResult result;
  double seconds = 0;  // since the layer before
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
  for (auto& layer : fitting_) layer.wait();
  if (writing_.valid()) writing_.wait();
}

void LayerPipeline::Put(size_t index, StatisticsObserver& observer, bool commit) {
  const auto layer = std::make_shared<Layer>();
  layer->index = index;
  layer->observed = observer.TakeOnDevice();
  while (!streams_.empty() && fitting_.size() >= streams_.size()) Collect();
  const bool last = index + 1 == input_.source->layers().size();
  const bool due = SecondsSince(last_commit_) >= input_.run.commit_seconds;
  layer->commit = commit || last || due || input_.device.is_cpu();
  if (layer->commit) last_commit_ = Clock::now();
  if (const ModelSource* model = input_.model(); layer->commit && !last && model != nullptr) {
    layer->hidden = KeepHidden(model->hidden());
    host_hidden_until_ = index;
  }
  if (streams_.empty()) {
    Deliver(Fit(layer, std::nullopt));
    return;
  }
  const c10::Stream stream = streams_[index % streams_.size()];
  layer->launched.emplace(input_.device.type());
  layer->launched->record(
      c10::impl::VirtualGuardImpl(input_.device.type()).getStream(input_.device));
  layer->observed.RecordStream(stream);
  fitting_.push_back(
      std::async(std::launch::async, [this, layer, stream] { return Fit(layer, stream); }));
}

// Beside the next layer, which changes them in place, hidden states must be a copy.
at::Tensor LayerPipeline::KeepHidden(const at::Tensor& hidden) {
  if (streams_.empty()) return hidden;
  if (writing_index_ <= host_hidden_until_) Finish();  // what stands there may not be on disk
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
                  {{"layer", layer_id}, {"seconds", layer.seconds}});
  }
  if (!layer.commit) return;
  const auto time = times_.Measure("commit");
  std::function<void(const std::filesystem::path&)> write_hidden;
  if (layer.hidden.defined())
    write_hidden = [&](const std::filesystem::path& path) { WriteHidden(path, layer.hidden); };
  job_.Commit(write_hidden);
}

void LayerPipeline::Deliver(const std::shared_ptr<Layer>& layer) {
  layer->seconds = SecondsSince(last_report_);
  if (streams_.empty()) {
    Write(*layer);
  } else {
    const auto time = times_.Measure("layer file awaited");
    if (writing_.valid()) writing_.get();
    writing_index_ = layer->index;
    writing_ = std::async(std::launch::async, [this, layer] { Write(*layer); });
  }
  if (hooks_.on_layer) {
    hooks_.on_layer({layer->index, input_.source->layers().size(), input_.num_tokens(),
                     SecondsSince(last_report_), BytesRead(input_, layer->index), layer->result});
  }
  last_report_ = Clock::now();
}

void LayerPipeline::Collect() {
  std::future<std::shared_ptr<Layer>> oldest = std::move(fitting_.front());
  fitting_.pop_front();
  std::shared_ptr<Layer> layer;
  {
    const auto time = times_.Measure("fit awaited");
    layer = oldest.get();
  }
  Deliver(layer);
}

void LayerPipeline::Finish() {
  while (!fitting_.empty()) Collect();
  if (writing_.valid()) writing_.get();
}

}  // namespace oscar
