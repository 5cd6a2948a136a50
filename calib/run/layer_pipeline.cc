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
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "calib/job/layer_file.h"
#include "calib/run/process_layer.h"
#include "calib/run/shard_directory.h"
#include "calib/run/tensor_file.h"
#include "capture/checkpoint/weight_storage.h"
#include "capture/files/mapped_file.h"
#include "capture/files/temporary_directory.h"
#include "capture/model/run/layer_weights.h"
#include "linalg/base/error_context.h"

namespace oscar {
namespace {

// Of one layer and those without a cache that run with it, from disk.
uint64_t BytesRead(const CalibrationInput& input, size_t layer_index) {
  uint64_t bytes = 0;
  if (input.shards != nullptr) {
    bytes = input.shards->LayerBytes(layer_index);
  } else if (const ModelSource* model = input.model()) {
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

// A result on its way to rank 0: its file.
std::string FileOf(const LayerResult& result) {
  const TemporaryDirectory directory("layer");
  const std::filesystem::path path = directory.path() / "layer.h5";
  WriteLayerFile(path, result);
  const MappedFile file = MappedFile::Open(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

LayerResult ResultOf(const std::string& bytes) {
  const TemporaryDirectory directory("layer");
  const std::filesystem::path path = directory.path() / "layer.h5";
  std::ofstream(path, std::ios::binary) << bytes;
  return ReadLayerFile(path);
}

template <typename T>
bool IsReady(const std::shared_future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

struct LayerPipeline::Layer {
  size_t index = 0;
  LayerOnDevice observed;
  std::function<LayerOnDevice()> gather;  // among ranks, where it is fitted, instead of `observed`
  bool commit = false;
  at::Tensor hidden;                   // to be written at the commit; undefined: none is
  std::optional<c10::Event> launched;  // everything above
  LayerResult result;
  std::vector<NamedTensor> kept;  // of a shard, on the host, beside a result that has its number
};

LayerPipeline::LayerPipeline(const CalibrationInput& input, const HeldOutSplit& split,
                             JobDirectory* job, const LayerExchange* exchange,
                             const CalibrationHooks& hooks, PhaseTimes& times)
    : input_(input), split_(split), job_(job), exchange_(exchange), hooks_(hooks), times_(times) {
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

bool LayerPipeline::FitsHere(size_t index) const {
  return exchange_ == nullptr || exchange_->OwnerOf(index) == exchange_->group().rank();
}

bool LayerPipeline::IsCommit(size_t index, Commit commit) const {
  if (commit == Commit::kNow || index + 1 == input_.source->layers().size()) return true;
  if (commit == Commit::kNever) return false;
  if (exchange_ != nullptr && streams_.empty())
    return exchange_->OwnerOf(index) + 1 == exchange_->group().size();  // the round is complete
  return input_.device.is_cpu() || IsCommitDue();
}

void LayerPipeline::Put(size_t index, LayerOnDevice observed, Commit commit) {
  const auto layer = std::make_shared<Layer>();
  layer->index = index;
  next_layer_ = index + 1;
  ++put_;
  const size_t ranks = exchange_ == nullptr ? 1 : static_cast<size_t>(exchange_->group().size());
  if (!streams_.empty()) AwaitFits(streams_.size());
  while (!fitting_.empty() && IsReady(fitting_.front().fitted)) Collect();
  const bool last = index + 1 == input_.source->layers().size();
  read_since_commit_ += BytesRead(input_, index);
  layer->commit = IsCommit(index, commit);
  if (layer->commit) {
    last_commit_ = Clock::now();
    read_since_commit_ = 0;
  }
  const auto stream_of_layer = [&] { return streams_[index / ranks % streams_.size()]; };
  if (!streams_.empty()) observed.RecordStream(stream_of_layer());
  if (exchange_ == nullptr) {
    layer->observed = std::move(observed);
  } else {
    const auto time = times_.Measure("layer to its owner");
    layer->gather = exchange_->Gather(index, std::move(observed));
  }
  if (const ModelSource* model = input_.running_model(); layer->commit && model != nullptr) {
    const auto time = times_.Measure("hidden states to the host");
    if (!last) {
      layer->hidden = KeepHidden(model->hidden());
    } else if (input_.ranks.shard) {
      layer->hidden = TextHiddenOf(input_);
    }
  }
  if (streams_.empty()) {
    round_.push_back(layer);
    if (exchange_ == nullptr || layer->commit ||
        exchange_->OwnerOf(index) + 1 == exchange_->group().size())
      FinishRound();
    return;
  }
  if (job_ == nullptr && !FitsHere(index)) return;
  const c10::Stream stream = stream_of_layer();
  layer->launched.emplace(input_.device.type());
  layer->launched->record(
      c10::impl::VirtualGuardImpl(input_.device.type()).getStream(input_.device));
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
  fitting_.push_back({index, fitted, written_});
}

// What this rank fits before what it waits for.
void LayerPipeline::FinishRound() {
  const std::vector<std::shared_ptr<Layer>> round = std::exchange(round_, {});
  for (const std::shared_ptr<Layer>& layer : round)
    if (FitsHere(layer->index)) Fit(layer, std::nullopt);
  for (const std::shared_ptr<Layer>& layer : round) {
    if (job_ != nullptr && !FitsHere(layer->index)) Fit(layer, std::nullopt);
    if (job_ != nullptr || FitsHere(layer->index)) Write(*layer);
    if (job_ != nullptr) Report(*layer);
  }
}

bool LayerPipeline::IsCommitDue() const {
  if (hidden_written_.valid() && !IsReady(hidden_written_)) return false;
  const ModelSource* const model = input_.running_model();
  // Of all ranks.
  const uint64_t hidden = model == nullptr ? 0
                                           : model->hidden().nbytes() /
                                                 static_cast<uint64_t>(model->num_tokens()) *
                                                 static_cast<uint64_t>(input_.job_tokens());
  if (read_since_commit_ >= kWeightsPerHidden * hidden) return true;
  // Not shortly before the end, which would wait for the disk.
  const double of_each = SecondsSince(begin_) / static_cast<double>(std::max<size_t>(put_, 1));
  const double end = of_each * static_cast<double>(input_.source->layers().size() - next_layer_);
  return SecondsSince(last_commit_) >= input_.run.commit_seconds &&
         end >= input_.run.commit_seconds / 2;
}

// Beside the next layer, which changes them in place, hidden states must be a copy. Of all ranks,
// at rank 0.
at::Tensor LayerPipeline::KeepHidden(const at::Tensor& hidden) {
  if (streams_.empty() && exchange_ == nullptr) return hidden;
  if (job_ != nullptr) {
    // What waits to be written waits for other ranks' fits, too, and a layer at which the run is to
    // stop for none of that.
    if (!host_hidden_.defined() || (hidden_written_.valid() && !IsReady(hidden_written_))) {
      host_hidden_ = at::empty(
          {input_.job_tokens(), hidden.size(1)},
          at::TensorOptions().dtype(hidden.scalar_type()).pinned_memory(!input_.device.is_cpu()));
    }
  }
  if (exchange_ == nullptr) {
    host_hidden_.copy_(hidden, /*non_blocking=*/true);
  } else {
    exchange_->GatherHidden(hidden, host_hidden_);
  }
  return host_hidden_;
}

std::shared_ptr<LayerPipeline::Layer> LayerPipeline::Fit(const std::shared_ptr<Layer>& layer,
                                                         std::optional<c10::Stream> stream) {
  if (FitsHere(layer->index)) {
    WithErrorContext(NameOf(*layer, "fitting"), [&] { FitHere(*layer, stream); });
  } else {  // at rank 0
    const auto time = times_.Measure("results awaited");
    layer->result = ResultOf(exchange_->group().ReceiveBytes(exchange_->OwnerOf(layer->index),
                                                             static_cast<int>(layer->index)));
  }
  return layer;
}

void LayerPipeline::FitHere(Layer& layer, std::optional<c10::Stream> stream) {
  std::optional<c10::StreamGuard> guard;
  const LayerSpec& spec = input_.source->layers()[layer.index];
  ObservedLayer observed;
  {
    const auto time = times_.Measure("layer awaited");
    if (stream) {
      guard.emplace(*stream);
      layer.launched->block(*stream);
      layer.launched->synchronize();
    } else {
      malloc_trim(0);  // what attention freed, so that its peak and that of the fit do not add up
    }
    if (layer.gather) layer.observed = std::exchange(layer.gather, {})();
    if (input_.ranks.shard) {
      for (auto& [name, tensor] : TensorsOfShard(std::exchange(layer.observed, {})))
        layer.kept.push_back({std::move(name), tensor.cpu()});
      layer.result.moments.layer_id = spec.layer_id;
      return;
    }
    observed = ReadBack(std::move(layer.observed), spec);
  }
  layer.result = ProcessLayer(std::move(observed), spec, split_, input_.options, times_);
  if (!stream) malloc_trim(0);  // and the other way round
}

void LayerPipeline::Write(const Layer& layer) {
  WithErrorContext(NameOf(layer, "writing"), [&] { WriteHere(layer); });
}

void LayerPipeline::WriteHere(const Layer& layer) {
  if (job_ == nullptr) {
    exchange_->group().SendBytes(FileOf(layer.result), 0, static_cast<int>(layer.index));
    return;
  }
  {
    const auto time = times_.Measure("layer file");
    const int layer_id = input_.source->layers()[layer.index].layer_id;
    const auto write = [&](const std::filesystem::path& path) {
      if (input_.ranks.shard) {
        WriteTensors(path, layer.kept);
      } else {
        WriteLayerFile(path, layer.result);
      }
    };
    job_->AddLayer(write, {{"layer", layer_id}, {"seconds", SecondsSince(last_write_)}});
  }
  last_write_ = Clock::now();
  if (!layer.commit) return;
  const auto time = times_.Measure("commit");
  if (layer.launched) layer.launched->synchronize();  // hidden states are there
  std::function<void(const std::filesystem::path&)> write_hidden;
  if (layer.hidden.defined())
    write_hidden = [&](const std::filesystem::path& path) {
      WriteTensors(path, {{"hidden", layer.hidden}});
    };
  job_->Commit(write_hidden);
}

void LayerPipeline::Report(const Layer& layer) {
  if (hooks_.on_layer) {
    hooks_.on_layer({layer.index, input_.source->layers().size(), input_.job_tokens(),
                     SecondsSince(last_report_), BytesRead(input_, layer.index), layer.result});
  }
  last_report_ = Clock::now();
}

void LayerPipeline::AwaitFits(size_t most) {
  const auto unfinished = [&](const Pending& layer) {
    return FitsHere(layer.index) && !IsReady(layer.fitted);
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
    const size_t most = exchange_ == nullptr ? kUnwritten : SIZE_MAX;
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
