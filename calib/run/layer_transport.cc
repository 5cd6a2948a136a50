// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/layer_transport.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "calib/job/layer_file.h"
#include "calib/run/layer_parts.h"
#include "calib/run/shard_directory.h"
#include "capture/files/mapped_file.h"
#include "capture/files/temporary_directory.h"
#include "capture/ranks/rank_group.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

class OneProcess : public LayerTransport {
 public:
  OneProcess(const CalibrationInput& input, const HeldOutSplit& split, PhaseTimes& times)
      : input_(input), split_(split), times_(times) {}

  size_t size() const override { return 1; }
  void At(const LayerSpec&) const override {}
  void Tick() const override {}
  size_t FirstLayer(const JobDirectory& job) const override { return job.finished_layers(); }
  Verdict Agree(size_t, const Verdict& own) const override { return own; }
  Observed Gather(size_t, LayerOnDevice own) const override {
    return [own = std::move(own)]() mutable { return std::move(own); };
  }
  void GatherHidden(const at::Tensor& own, const std::function<at::Tensor()>& all) const override {
    all().copy_(own, /*non_blocking=*/true);
  }
  std::vector<TextRows> GatherText(const ModelSource& model) const override {
    return TextRowsOf(model);
  }
  at::Tensor Scatter(const at::Tensor& all) const override { return all; }
  FinishedLayer Finish(size_t, const Observed& observed, const Fit& fit) const override {
    return {fit(observed()), {}};
  }

 protected:
  const CalibrationInput& input_;
  const HeldOutSplit& split_;
  PhaseTimes& times_;
};

// One of several shards. It fits nothing; its job stores data that another process will fit.
class OneShard : public OneProcess {
 public:
  using OneProcess::OneProcess;
  std::vector<TextRows> GatherText(const ModelSource&) const override { return {}; }
  FinishedLayer Finish(size_t layer_index, const Observed& observed, const Fit&) const override {
    FinishedLayer layer;
    layer.result.moments.layer_id = input_.source->layers()[layer_index].layer_id;
    for (auto& [name, tensor] : TensorsOfShard(observed()))
      layer.part.push_back({std::move(name), tensor.cpu()});
    return layer;
  }
  at::Tensor LastHidden() const override { return TextHiddenOf(input_); }
};

// All shards. Their files take the place of a running model.
class Shards : public OneProcess {
 public:
  Shards(const CalibrationInput& input, const ShardSet& shards, const HeldOutSplit& split,
         PhaseTimes& times)
      : OneProcess(input, split, times), shards_(shards) {}
  Observed Gather(size_t layer_index, LayerOnDevice) const override {
    return [this, layer_index] {
      const auto time = times_.Measure("shards read");
      return shards_.ReadLayer(input_, split_, layer_index);
    };
  }
  std::vector<TextRows> GatherText(const ModelSource&) const override {
    return shards_.ReadTextRows(input_);
  }

 private:
  const ShardSet& shards_;
};

constexpr int64_t kHiddenBytes = 256LL << 20;  // most bytes in transit at a time

// Returns a result as the bytes of its file, to be sent to rank 0.
std::string FileOf(const LayerResult& result) {
  const TemporaryDirectory directory("layer");
  const std::filesystem::path path = directory.path() / "layer.safetensors";
  WriteLayerFile(path, result);
  const MappedFile file = MappedFile::Open(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

LayerResult ResultOf(const std::string& bytes) {
  const TemporaryDirectory directory("layer");
  const std::filesystem::path path = directory.path() / "layer.safetensors";
  std::ofstream(path, std::ios::binary) << bytes;
  return ReadLayerFile(path);
}

// Ranks that take turns to fit layers. Rank 0 has the job.
class Ranks : public OneProcess {
 public:
  Ranks(const CalibrationInput& input, RankGroup& group, const HeldOutSplit& split,
        PhaseTimes& times)
      : OneProcess(input, split, times), group_(group), shares_(input.ranks.shares) {}

  size_t size() const override { return shares_.size(); }
  void At(const LayerSpec& layer) const override {
    group_.watch().At(fmt::format("layer {}", layer.layer_id));
  }
  void Tick() const override { group_.watch().Tick(); }

  size_t FirstLayer(const JobDirectory& job) const override {
    const std::string key = "first layer";
    if (is_first()) group_.Set(key, std::to_string(job.finished_layers()));
    return std::stoul(group_.Get(key));
  }

  Verdict Agree(size_t layer_index, const Verdict& own) const override {
    const auto time = times_.Measure("rank 0 awaited");
    const std::string key = fmt::format("layer/{}", layer_index);
    if (is_first()) {
      const bool stop = own.stop || group_.Has("stop");
      group_.Set(key, fmt::format("{:d}{:d}", stop, static_cast<int>(own.commit)));
      return {stop, own.commit};
    }
    if (own.stop) group_.Set("stop", "1");
    const std::string said = group_.Get(key);
    OSCAR_CHECK_EQ(said.size(), 2U);
    return {said[0] == '1', static_cast<Commit>(said[1] - '0')};
  }

  Observed Gather(size_t layer_index, LayerOnDevice own) const override {
    const auto time = times_.Measure("layer to its owner");
    const size_t owner = layer_index % size();
    if (rank() != owner) {
      std::vector<at::Tensor> bytes;
      for (const auto& [name, tensor] : TensorsOf(own)) bytes.push_back(BytesOf(tensor));
      group_.Send(at::cat(bytes), static_cast<int>(owner));
      return {};
    }
    std::vector<Part> parts(size());
    for (size_t from = 0; from < size(); ++from) {
      if (from == owner) continue;
      Part& part = parts[from];
      part.layer = EmptyPart(input_, split_, layer_index, shares_[from]);
      int64_t bytes = 0;
      for (const auto& [name, tensor] : TensorsOf(part.layer))
        bytes += static_cast<int64_t>(tensor.nbytes());
      part.bytes = at::empty({bytes}, own.layer.keys.at(0).options().dtype(at::kByte));
      part.wait = group_.Receive(part.bytes, static_cast<int>(from));
    }
    parts[owner].layer = std::move(own);
    return [this, parts = std::move(parts)]() mutable {
      std::vector<LayerOnDevice> layers;
      for (Part& part : parts) layers.push_back(std::exchange(part, {}).Take());
      return Together(std::move(layers), shares_, split_);
    };
  }

  void GatherHidden(const at::Tensor& own, const std::function<at::Tensor()>& all) const override {
    const at::Tensor whole = is_first() ? all() : at::Tensor();
    ForEachPart(own, [&](size_t of, int64_t first, int64_t first_of_all, int64_t rows) {
      if (is_first()) {
        const at::Tensor part =
            of == 0 ? own.narrow(0, first, rows) : at::empty({rows, own.size(1)}, own.options());
        if (of != 0) group_.Receive(part, static_cast<int>(of))();
        whole.narrow(0, first_of_all, rows).copy_(part, /*non_blocking=*/true);
      } else if (of == rank()) {
        group_.Send(own.narrow(0, first, rows), 0);
      }
    });
  }

  at::Tensor Scatter(const at::Tensor& all) const override {
    const int64_t hidden_size = input_.model()->loop().spec().hidden_size;
    at::Tensor own = at::empty({input_.ranks.own().num_tokens, hidden_size},
                               at::dtype(input_.dtype).device(input_.device));
    ForEachPart(own, [&](size_t of, int64_t first, int64_t first_of_all, int64_t rows) {
      if (is_first()) {
        const at::Tensor part = all.narrow(0, first_of_all, rows).to(input_.device);
        if (of != 0) group_.Send(part, static_cast<int>(of));
        if (of == 0) own.narrow(0, first, rows).copy_(part);
      } else if (of == rank()) {
        group_.Receive(own.narrow(0, first, rows), 0)();
      }
    });
    return own;
  }

  std::vector<TextRows> GatherText(const ModelSource& model) const override {
    std::vector<TextRows> sample;
    if (!HasTextLoss(model)) return sample;
    for (const auto& [sequence, tokens] : TextSampleOf(input_.lengths())) {
      size_t of = 0;
      while (!shares_[of].Has(sequence)) ++of;
      if (of == rank()) {
        TextRows rows = RowsOf(model, sequence - shares_[of].first_sequence, tokens);
        if (is_first()) {
          sample.push_back(std::move(rows));
        } else {
          group_.Send(at::tensor(rows.ids, at::kInt).to(input_.device), 0);
          group_.Send(rows.hidden, 0);
        }
      } else if (is_first()) {
        const at::Tensor ids = at::empty({tokens}, at::dtype(at::kInt).device(input_.device));
        const at::Tensor hidden =
            at::empty({tokens, model.hidden().size(1)}, model.hidden().options());
        group_.Receive(ids, static_cast<int>(of))();
        group_.Receive(hidden, static_cast<int>(of))();
        const at::Tensor host = ids.cpu();
        const auto* begin = host.const_data_ptr<int32_t>();
        sample.push_back({{begin, begin + tokens}, hidden});
      }
    }
    return sample;
  }

  FinishedLayer Finish(size_t layer_index, const Observed& observed,
                       const Fit& fit) const override {
    const size_t owner = layer_index % size();
    const int tag = static_cast<int>(layer_index);
    if (owner == rank()) {
      FinishedLayer layer{fit(observed()), {}};
      if (!is_first()) group_.SendBytes(FileOf(layer.result), 0, tag);
      return layer;
    }
    if (!is_first()) return {};
    const auto time = times_.Measure("results awaited");
    return {ResultOf(group_.ReceiveBytes(static_cast<int>(owner), tag)), {}};
  }

 private:
  // A layer observed by another rank, on its way to this one.
  struct Part {
    LayerOnDevice layer;
    at::Tensor bytes;
    std::function<void()> wait;  // empty: already received

    LayerOnDevice Take() {
      if (!wait) return std::move(layer);
      wait();
      const at::Device device = bytes.device();
      if (!device.is_cpu())
        bytes.record_stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
      int64_t begin = 0;
      for (const auto& [name, tensor] : TensorsOf(layer)) {
        const auto count = static_cast<int64_t>(tensor.nbytes());
        BytesOf(tensor).copy_(bytes.narrow(0, begin, count));
        begin += count;
      }
      return std::move(layer);
    }
  };

  size_t rank() const { return static_cast<size_t>(group_.rank()); }
  bool is_first() const { return group_.rank() == 0; }
  // Visits the rows of `hidden` of all ranks in pieces: calls part(rank, first row within the rank,
  // first row among all ranks, number of rows).
  void ForEachPart(const at::Tensor& hidden,
                   const std::function<void(size_t, int64_t, int64_t, int64_t)>& part) const {
    const int64_t row_bytes = hidden.size(1) * static_cast<int64_t>(hidden.element_size());
    const int64_t step = std::max<int64_t>(1, kHiddenBytes / row_bytes);
    for (size_t of = 0; of < size(); ++of) {
      const RankShare& share = shares_[of];
      for (int64_t row = 0; row < share.num_tokens; row += step)
        part(of, row, share.first_token + row, std::min(step, share.num_tokens - row));
    }
  }

  RankGroup& group_;
  const std::vector<RankShare>& shares_;
};

}  // namespace

void FinishedLayer::Write(const std::filesystem::path& path) const {
  if (part.empty()) {
    WriteLayerFile(path, result);
  } else {
    WriteTensors(path, part);
  }
}

std::unique_ptr<LayerTransport> LayerTransport::Of(const CalibrationInput& input,
                                                   const HeldOutSplit& split, PhaseTimes& times) {
  if (const auto* merge = dynamic_cast<const ShardSource*>(input.source.get()))
    return std::make_unique<Shards>(input, merge->shards(), split, times);
  if (input.ranks.apart) return std::make_unique<OneShard>(input, split, times);
  if (input.ranks.group->size() > 1)
    return std::make_unique<Ranks>(input, *input.ranks.group, split, times);
  return std::make_unique<OneProcess>(input, split, times);
}

}  // namespace oscar
