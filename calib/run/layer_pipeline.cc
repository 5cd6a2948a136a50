// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/layer_pipeline.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "calib/run/process_layer.h"
#include "calib/run/tensor_file.h"
#include "linalg/base/error_context.h"

namespace oscar {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Weight bytes read per byte of hidden states before a commit, because both compete for the disk.
constexpr uint64_t kWeightsPerHidden = 20;

// Maximum number of results that wait while hidden states are written to disk.
constexpr size_t kUnwritten = 8;

template <typename T>
bool IsReady(const std::shared_future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

struct LayerPipeline::Layer {
  size_t index = 0;
  LayerTransport::Observed observed;
  bool fits_here = false;
  bool commit = false;
  at::Tensor hidden;                   // written at the commit; undefined: nothing is written
  std::optional<c10::Event> launched;  // recorded after the kernels of `observed` and `hidden`
  FinishedLayer finished;
};

LayerPipeline::LayerPipeline(const CalibrationInput& input, const HeldOutSplit& split,
                             const LayerTransport& transport, JobDirectory& job,
                             const CalibrationHooks& hooks, PhaseTimes& times)
    : input_(input), split_(split), transport_(transport), job_(job), hooks_(hooks), times_(times) {
  if (input.device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl device(input.device.type());
  for (int i = 0; i < input.run.fits_beside; ++i)
    streams_.push_back(device.getStreamFromGlobalPool(input.device, /*isHighPriority=*/true));
}

LayerPipeline::~LayerPipeline() {
  if (written_.valid()) written_.wait();
}

std::string LayerPipeline::NameOf(const Layer& layer, std::string_view step) const {
  return fmt::format("{} layer {}", step, input_.source->layers()[layer.index].layer_id);
}

Commit LayerPipeline::CommitAfter(size_t index) const {
  if (input_.device.is_cpu()) return Commit::kWithRound;
  if (hidden_written_.valid() && !IsReady(hidden_written_)) return Commit::kNever;
  const ModelSource* const model = input_.running_model();
  // Bytes of hidden states on all ranks.
  const uint64_t hidden = model == nullptr ? 0
                                           : model->hidden().nbytes() /
                                                 static_cast<uint64_t>(model->num_tokens()) *
                                                 static_cast<uint64_t>(input_.job_tokens());
  if (read_since_commit_ + input_.source->BytesRead(index) >= kWeightsPerHidden * hidden)
    return Commit::kNow;
  // Shortly before the end there is no commit, because the end would wait for the disk.
  const double of_each = SecondsSince(begin_) / static_cast<double>(put_ + 1);
  const double end = of_each * static_cast<double>(input_.source->layers().size() - index - 1);
  return SecondsSince(last_commit_) >= input_.run.commit_seconds &&
                 end >= input_.run.commit_seconds / 2
             ? Commit::kNow
             : Commit::kNever;
}

void LayerPipeline::Put(size_t index, LayerOnDevice observed, Commit commit) {
  const auto layer = std::make_shared<Layer>();
  layer->index = index;
  ++put_;
  if (!streams_.empty()) AwaitFits(streams_.size());
  while (!fitting_.empty() && IsReady(fitting_.front().fitted)) Collect();
  const bool last = index + 1 == input_.source->layers().size();
  read_since_commit_ += input_.source->BytesRead(index);
  layer->commit =
      last || commit == Commit::kNow || (commit == Commit::kWithRound && EndsRound(index));
  if (layer->commit) {
    last_commit_ = Clock::now();
    read_since_commit_ = 0;
  }
  const auto stream_of_layer = [&] {
    return streams_[index / transport_.size() % streams_.size()];
  };
  if (!streams_.empty()) observed.RecordStream(stream_of_layer());
  layer->observed = transport_.Gather(index, std::move(observed));
  layer->fits_here = static_cast<bool>(layer->observed);
  if (const ModelSource* model = input_.running_model(); layer->commit && model != nullptr) {
    const auto time = times_.Measure("hidden states to the host");
    layer->hidden = last ? transport_.LastHidden() : KeepHidden(model->hidden());
  }
  if (streams_.empty()) {
    round_.push_back(layer);
    if (layer->commit || EndsRound(index)) FinishRound();
    return;
  }
  const c10::Stream stream = stream_of_layer();
  layer->launched.emplace(input_.device.type());
  layer->launched->record(
      c10::impl::VirtualGuardImpl(input_.device.type()).getStream(input_.device));
  const auto fit = [this, layer, stream] {
    Fit(*layer, stream);
    return layer;
  };
  std::shared_future<std::shared_ptr<Layer>> fitted = std::async(std::launch::async, fit).share();
  // Drops the futures it waited for. A future keeps its function alive, and so the whole chain.
  const auto write = [this, fitted, before = written_]() mutable {
    const std::shared_ptr<Layer> own = std::exchange(fitted, {}).get();
    if (before.valid()) std::exchange(before, {}).get();
    Write(*own);
  };
  written_ = std::async(std::launch::async, write).share();
  if (layer->hidden.defined()) hidden_written_ = written_;
  fitting_.push_back({layer->fits_here, fitted, written_});
}

// Fits the layers of this process before it waits for the layers of other processes.
void LayerPipeline::FinishRound() {
  const std::vector<std::shared_ptr<Layer>> round = std::exchange(round_, {});
  for (const bool here : {true, false}) {
    for (const std::shared_ptr<Layer>& layer : round)
      if (layer->fits_here == here) Fit(*layer, std::nullopt);
  }
  for (const std::shared_ptr<Layer>& layer : round) {
    Write(*layer);
    Report(*layer);
  }
}

// Returns hidden states that stay valid while the next layer changes the model's in place. Rank 0
// gets the hidden states of all ranks.
at::Tensor LayerPipeline::KeepHidden(const at::Tensor& hidden) {
  if (streams_.empty() && transport_.size() == 1) return hidden;
  transport_.GatherHidden(hidden, [&] {
    // A pending write also waits for the fits of other ranks. A run that stops at this layer must
    // not wait for these fits, so it uses a new buffer.
    if (!host_hidden_.defined() || (hidden_written_.valid() && !IsReady(hidden_written_))) {
      host_hidden_ = at::empty(
          {input_.job_tokens(), hidden.size(1)},
          at::TensorOptions().dtype(hidden.scalar_type()).pinned_memory(!input_.device.is_cpu()));
    }
    return host_hidden_;
  });
  return host_hidden_;
}

void LayerPipeline::Fit(Layer& layer, std::optional<c10::Stream> stream) {
  std::optional<c10::StreamGuard> guard;
  const LayerSpec& spec = input_.source->layers()[layer.index];
  const auto observed = [&] {
    const auto time = times_.Measure("layer awaited");
    if (stream) {
      guard.emplace(*stream);
      layer.launched->block(*stream);
      layer.launched->synchronize();
    } else {
      malloc_trim(0);  // frees attention's memory, so that both peaks do not add up
    }
    return std::exchange(layer.observed, {})();
  };
  const auto fit = [&](LayerOnDevice on_device) {
    ObservedLayer rows;
    {
      const auto time = times_.Measure("layer awaited");
      rows = ReadBack(std::move(on_device), spec);
    }
    LayerResult result = ProcessLayer(std::move(rows), spec, split_, input_.options, times_);
    if (!stream) malloc_trim(0);  // frees the fit's memory
    return result;
  };
  WithErrorContext(NameOf(layer, "fitting"),
                   [&] { layer.finished = transport_.Finish(layer.index, observed, fit); });
}

void LayerPipeline::Write(const Layer& layer) {
  WithErrorContext(NameOf(layer, "writing"), [&] { WriteHere(layer); });
}

void LayerPipeline::WriteHere(const Layer& layer) {
  {
    const auto time = times_.Measure("layer file");
    const int layer_id = input_.source->layers()[layer.index].layer_id;
    job_.AddLayer([&](const std::filesystem::path& path) { layer.finished.Write(path); },
                  {{"layer", layer_id}, {"seconds", SecondsSince(last_write_)}});
  }
  last_write_ = Clock::now();
  if (!layer.commit) return;
  const auto time = times_.Measure("commit");
  if (layer.launched) layer.launched->synchronize();  // hidden states have been copied
  std::function<void(const std::filesystem::path&)> write_hidden;
  if (layer.hidden.defined())
    write_hidden = [&](const std::filesystem::path& path) {
      WriteTensors(path, {{"hidden", layer.hidden}});
    };
  job_.Commit(write_hidden);
}

void LayerPipeline::Report(const Layer& layer) {
  if (hooks_.on_layer) {
    hooks_.on_layer({layer.index, input_.source->layers().size(), input_.job_tokens(),
                     SecondsSince(last_report_), input_.source->BytesRead(layer.index),
                     layer.finished.result});
  }
  last_report_ = Clock::now();
}

void LayerPipeline::AwaitFits(size_t most) {
  const auto unfinished = [&](const Pending& layer) {
    return layer.fits_here && !IsReady(layer.fitted);
  };
  const auto time = times_.Measure("fit awaited");
  while (std::ranges::count_if(fitting_, unfinished) >= static_cast<std::ptrdiff_t>(most))
    std::ranges::find_if(fitting_, unfinished)->fitted.wait();
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
    const size_t most = transport_.size() == 1 ? kUnwritten : SIZE_MAX;
    for (; collected_.size() >= most || (!collected_.empty() && IsReady(collected_.front()));
         collected_.pop_front())
      collected_.front().get();
  }
  collected_.push_back(oldest.written);
  Report(*oldest.fitted.get());
}

void LayerPipeline::Finish() {
  FinishRound();
  while (!fitting_.empty()) Collect();
  for (; !collected_.empty(); collected_.pop_front()) collected_.front().get();
  if (written_.valid()) std::exchange(written_, {}).get();
}

}  // namespace oscar
