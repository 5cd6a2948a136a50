// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/validation_observer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "capture/dump/hdf5_file.h"
#include "capture/model/run/latent_attention.h"
#include "export/evaluate/position_buckets.h"
#include "export/validate/cached_attention.h"
#include "export/validate/streamed_comparison.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Returns the size of a score matrix. On a GPU it is large enough to keep the GPU busy. On a CPU a
// few of them fit into the CPU's caches; the rows of such a small slice also see nearly the same
// keys.
int64_t ScoreBytes(at::Device device) { return device.is_cpu() ? 4 << 20 : 256 << 20; }

// If all rows are measured, sequences of at least this many tokens need no score matrices.
constexpr int64_t kStreamedTokens = 2048;

// Returns the size of the caches that are compared in one batch. Every batch computes the
// reference's scores again.
int64_t BatchBytes(at::Device device) { return int64_t{device.is_cpu() ? 2 : 8} << 30; }

int64_t BytesOf(const RowComparison::Prepared& stored) {
  int64_t bytes = 0;
  for (const at::Tensor* x :
       {&stored.k_stored, &stored.values, &stored.k, &stored.exact_minus_stored})
    bytes += x->defined() ? static_cast<int64_t>(x->nbytes()) : 0;
  return bytes;
}

at::Tensor RowsOf(const at::Tensor& x, const std::vector<int64_t>& positions) {
  return x.index_select(0, at::tensor(positions, at::kLong).to(x.device(), /*non_blocking=*/true));
}

// Adds the time from construction to destruction to `seconds`.
class ArmClock {
 public:
  explicit ArmClock(double& seconds) : seconds_(seconds) {}
  ~ArmClock() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }
  ArmClock(const ArmClock&) = delete;
  ArmClock& operator=(const ArmClock&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

ExactSides ExactOf(const LayerCache& cache) { return {cache.k_exact, cache.v_exact}; }

constexpr const char* kSeconds = "/seconds";
std::string LocalName(size_t arm) { return fmt::format("/local/{}", arm); }
std::string EndToEndName(size_t arm) { return fmt::format("/end_to_end/{}", arm); }

}  // namespace

ValidationObserver::ValidationObserver(MethodContext& context, const std::vector<Arm>& arms,
                                       const MeasuredRows& rows, const Options& options)
    : context_(context),
      arms_(arms),
      rows_(rows),
      options_(options),
      seconds_(arms.size()),
      masks_(arms.size()) {
  OSCAR_CHECK(arms.size() > 1 && arms[0].is_reference());
  for (size_t arm = 1; arm < arms.size(); ++arm) {
    const auto group = std::ranges::find_if(groups_, [&](const std::vector<size_t>& of) {
      ArmOptions same = arms[arm].options;
      same.windows = arms[of[0]].options.windows;
      return arms[arm].method == arms[of[0]].method && same == arms[of[0]].options;
    });
    (group == groups_.end() ? groups_.emplace_back() : *group).push_back(arm);
  }
  for (const MeasuredRow& row : rows.rows) positions_[row.sequence].push_back(row.position);
  for (const Arm& arm : arms) {
    local_.emplace_back(arm.name, rows);
    if (options.end_to_end) end_to_end_.emplace_back(arm.name + " end to end", rows);
  }
}

void ValidationObserver::OnLayerBegin(const LayerSpec& layer) {
  layer_index_ = layers_seen_++;
  OSCAR_CHECK_EQ(context_.layers()[layer_index_].layer_id, layer.layer_id);
  for (ArmErrors& errors : local_) errors.BeginLayer(layer);
  for (ArmErrors& errors : end_to_end_) errors.BeginLayer(layer);
}

// Makes the caches of the current layer. The arms of a group share one cache, whose time is charged
// to the first of them, but each has its own exact tokens.
const std::vector<LayerCache>& ValidationObserver::LayerCaches() {
  if (!caches_.empty()) return caches_;
  caches_.resize(arms_.size());
  caches_[0] = MakeLayerCache(*arms_[0].method, context_, layer_index_, arms_[0].options);
  for (const std::vector<size_t>& group : groups_) {
    const Arm& first = arms_[group[0]];
    const ArmClock clock(seconds_[group[0]]);
    std::vector<CacheSides>& before = rows_before_[group[0]];
    context_.SetRowsBefore(before);
    const LayerCache made = MakeLayerCache(*first.method, context_, layer_index_, first.options);
    if (first.method->reads_layer_before) {
      const CalibrationRows& rows = context_.rows();
      before.resize(rows.k.size());
      for (size_t i = 0; i < before.size(); ++i)
        StoreBehind(made, {rows.k[i], rows.v[i]}, before[i]);
    }
    for (const size_t arm : group) {
      caches_[arm] = made;
      if (!first.method->takes_windows) continue;
      caches_[arm].k_exact = caches_[arm].v_exact = ArmWindows(context_, arms_[arm].options);
    }
  }
  return caches_;
}

bool ValidationObserver::ReadsLayerBefore() const {
  return std::ranges::any_of(arms_, [](const Arm& arm) { return arm.method->reads_layer_before; });
}

CachedRows ValidationObserver::StoreBehind(const LayerCache& cache, const CacheSides& rows,
                                           CacheSides& before) {
  const auto* behind = std::get_if<LayerCache::StoreBehind>(&cache.otherwise);
  CachedRows stored = behind != nullptr ? (*behind)(rows, before) : cache.store(rows);
  before = stored.quantized;
  return stored;
}

bool ValidationObserver::Attend(const AttentionView& view) {
  if (view.stream == 0) return false;
  const LayerCache& cache = LayerCaches()[view.stream];
  const CachedRows rows = [&] {
    const ArmClock clock(seconds_[view.stream]);
    if (!arms_[view.stream].method->reads_layer_before) return cache.store({view.k, view.v});
    return StoreBehind(cache, {view.k, view.v}, own_before_[{view.stream, view.sequence}]);
  }();
  const AttendedRows read = AttendCached(view, cache, rows, masks_[view.stream]);
  if (const auto measured = positions_.find(view.sequence); measured != positions_.end()) {
    pending_[view.sequence].push_back({.q = RowsOf(read.q, measured->second),
                                       .k = read.k,
                                       .v = read.v,
                                       .k_stored = read.stored.k,
                                       .v_stored = read.stored.v,
                                       .k_pe = read.k_pe});
  }
  return true;
}

void ValidationObserver::OnAttention(const AttentionView& view) {
  const auto measured = positions_.find(view.sequence);
  if (measured == positions_.end()) return;
  if (view.stream == 0) {
    Streams own = {.q = RowsOf(view.q, measured->second), .k = view.k, .v = view.v};
    if (view.q_pe.defined()) {
      own.q_pe = RowsOf(view.q_pe, measured->second);
      own.k_pe = view.k_pe;
      own.w_uv = ValueExpansion(*view.layer.attention.latent, view.kv_b);
    }
    pending_[view.sequence] = {std::move(own)};
  }
  if (view.stream + 1 == num_streams()) {
    Measure(view.layer, view.sequence);
    pending_.erase(view.sequence);
  }
}

// `arms` are a group (groups_). `rows` are the reference's rows in the measuring type.
ValidationObserver::Comparison ValidationObserver::CompareLocally(const std::vector<size_t>& arms,
                                                                  int64_t sequence,
                                                                  const Streams& reference,
                                                                  const CacheSides& rows,
                                                                  const CacheEnergy& energy) {
  const std::vector<LayerCache>& caches = LayerCaches();
  // Takes the first arm of the group that reads exact rows, because arms without windows do not
  // read them.
  const auto shows_exact = [&](size_t arm) { return ExactOf(caches[arm]).any(); };
  const auto found = std::ranges::find_if(arms, shows_exact);
  const LayerCache& cache = caches[found == arms.end() ? arms[0] : *found];
  const CachedRows stored = arms_[arms[0]].method->reads_layer_before
                                ? StoreBehind(cache, rows, local_before_[{arms[0], sequence}])
                                : cache.store(rows);
  Comparison result;
  const auto whole = [&](const at::Tensor& k) { return WithPositionOf(k, reference.k_pe); };
  result.stored = {whole(stored.quantized.k), stored.quantized.v, whole(stored.exact.k),
                   stored.exact.v};
  if (cache.queries) result.queries = WithPositionOf(cache.queries(reference.q), reference.q_pe);
  for (const size_t arm : arms) {
    result.results.emplace_back(&local_[arm], result.exact.size());
    result.exact.push_back(ExactOf(caches[arm]));
    local_[arm].AddCache(energy, rows.k, stored.quantized.k, rows.v, stored.quantized.v);
  }
  return result;
}

ValidationObserver::Comparison ValidationObserver::CompareEndToEnd(size_t arm, const Streams& own,
                                                                   const CacheSides& rows,
                                                                   const CacheEnergy& energy) {
  end_to_end_[arm].AddCache(energy, rows.k, own.k_stored, rows.v, own.v_stored);
  return {.stored = {WithPositionOf(own.k_stored, own.k_pe), own.v_stored,
                     WithPositionOf(own.k, own.k_pe), own.v},
          .queries = own.q,
          .exact = {ExactOf(LayerCaches()[arm])},
          .results = {{&end_to_end_[arm], 0}}};
}

void ValidationObserver::Measure(const LayerSpec& layer, int64_t sequence) {
  const AttentionSpec& spec = layer.attention;
  const std::vector<Streams>& streams = pending_.at(sequence);
  OSCAR_CHECK_EQ(streams.size(), num_streams());
  const Streams& reference = streams[0];
  const at::ScalarType dtype = options_.measure_dtype;
  const CacheSides rows{reference.k.to(dtype), reference.v.to(dtype), sequence};
  const CacheEnergy energy(rows.k, rows.v);

  Caches caches;
  caches.emplace_back([&] {
    Comparison exact{.stored = {WithPositionOf(rows.k, reference.k_pe), rows.v, {}, {}},
                     .queries = {},
                     .exact = {{}},
                     .results = {{&local_[0], 0}},
                     .is_reference = true};
    local_[0].AddCache(energy, rows.k, rows.k, rows.v, rows.v);
    if (end_to_end_.empty()) return exact;
    exact.results.emplace_back(&end_to_end_[0], 0);
    end_to_end_[0].AddCache(energy, rows.k, reference.k, rows.v, reference.v);
    return exact;
  });
  for (const std::vector<size_t>& arms : groups_)
    caches.emplace_back([&] { return CompareLocally(arms, sequence, reference, rows, energy); });
  for (size_t arm = 1; arm < end_to_end_.size(); ++arm)
    caches.emplace_back([&, arm] { return CompareEndToEnd(arm, streams[arm], rows, energy); });

  const at::Tensor positions = at::tensor(positions_.at(sequence), at::kLong);
  const int64_t tokens = rows.k.size(0);
  const int64_t exact = rows_.windows.sink + rows_.windows.recent;
  const at::Tensor headline = positions.ge(FirstHeadlineRow(tokens, exact))
                                  .to(dtype)
                                  .to(rows.k.device(), /*non_blocking=*/true);
  const bool streamed = positions.size(0) == tokens && tokens >= kStreamedTokens &&
                        dtype == at::kFloat &&
                        StreamedComparison::Takes(spec, reference.q, reference.k, reference.v);
  if (streamed) caches = MeasureAllRows(spec, reference, caches, headline);
  if (!caches.empty()) MeasureRows(spec, reference, rows, caches, positions, headline);
}

ValidationObserver::Caches ValidationObserver::MeasureAllRows(const AttentionSpec& spec,
                                                              const Streams& reference,
                                                              const Caches& caches,
                                                              const at::Tensor& headline) {
  Caches left;
  const StreamedComparison comparison(spec, reference.q, reference.k, reference.v);
  for (const std::function<Comparison()>& make : caches) {
    const Comparison cache = make();
    if (cache.queries.defined() && cache.queries.scalar_type() != at::kBFloat16) {
      left.emplace_back([cache] { return cache; });
      continue;
    }
    const std::vector<RowErrors> errors =
        cache.is_reference ? std::vector{comparison.NoErrors()}
                           : comparison.Compare(cache.stored, cache.queries, cache.exact);
    for (const auto& [arm, index] : cache.results)
      arm->AddRows(errors[index], comparison.reference(), headline);
  }
  return left;
}

void ValidationObserver::MeasureRows(const AttentionSpec& spec, const Streams& reference,
                                     const CacheSides& rows, const Caches& caches,
                                     const at::Tensor& positions, const at::Tensor& headline) {
  const at::Tensor queries = WithPositionOf(reference.q, reference.q_pe);
  RowComparison comparison(spec, WithPositionOf(rows.k, reference.k_pe), rows.v,
                           rows.k.scalar_type());
  if (reference.w_uv.defined()) comparison.SetOutputMap(reference.w_uv);
  const at::Device device = rows.k.device();
  const int64_t num_rows = positions.size(0);
  const int64_t step = RowsPerSlice(
      spec, rows.k.size(0), static_cast<int64_t>(rows.k.element_size()), ScoreBytes(device));
  for (size_t next = 0; next < caches.size();) {
    std::vector<Comparison> batch;
    std::vector<RowComparison::Prepared> prepared;
    for (int64_t bytes = 0; next < caches.size() && bytes < BatchBytes(device); ++next) {
      batch.push_back(caches[next]());
      prepared.push_back(comparison.Prepare(std::exchange(batch.back().stored, {})));
      bytes += BytesOf(prepared.back());
    }
    for (int64_t begin = 0; begin < num_rows; begin += step) {
      const int64_t end = std::min(num_rows, begin + step);
      const at::Tensor weight = headline.slice(0, begin, end);
      comparison.SetRows({positions.slice(0, begin, end), queries.slice(0, begin, end)});
      for (size_t i = 0; i < batch.size(); ++i) {
        const at::Tensor& own = batch[i].queries;
        const at::Tensor own_queries = own.defined() ? own.slice(0, begin, end) : own;
        std::optional<size_t> apart;
        for (const auto& [arm, index] : batch[i].results)
          if (options_.by_distance != 0 && arm == &local_[options_.by_distance]) apart = index;
        const std::vector<RowErrors> errors =
            comparison.Compare(prepared[i], own_queries, batch[i].exact, apart);
        for (const auto& [arm, index] : batch[i].results) {
          arm->AddRows(errors[index], comparison.reference(), weight);
          if (apart && arm == &local_[options_.by_distance])
            arm->AddDistances(errors[index].by_distance, weight);
        }
      }
    }
  }
}

void ValidationObserver::OnLayerEnd(const LayerSpec&) {
  OSCAR_CHECK(pending_.empty());
  for (ArmErrors& errors : local_) errors.EndLayer();
  for (ArmErrors& errors : end_to_end_) errors.EndLayer();
  caches_.clear();
  for (MixedMasks& masks : masks_) masks.Clear();
}

void ValidationObserver::WriteLayer(const std::filesystem::path& path, size_t index) const {
  Hdf5Writer file(path);
  const auto write = [&](const std::string& name, const std::vector<double>& numbers) {
    file.Write<double>(name, {std::ssize(numbers)}, numbers);
  };
  for (size_t arm = 0; arm < arms_.size(); ++arm) {
    write(LocalName(arm), local_[arm].Packed(index));
    if (!end_to_end_.empty()) write(EndToEndName(arm), end_to_end_[arm].Packed(index));
  }
  write(kSeconds, seconds_);
  file.Commit();
}

void ValidationObserver::ReadLayer(const std::filesystem::path& path) {
  const Hdf5Reader file(path);
  const auto numbers = [&](const std::string& name) { return file.Read<double>(name, {-1}); };
  for (size_t arm = 0; arm < arms_.size(); ++arm) {
    local_[arm].AddPacked(numbers(LocalName(arm)));
    if (!end_to_end_.empty()) end_to_end_[arm].AddPacked(numbers(EndToEndName(arm)));
  }
  seconds_ = file.Read<double>(kSeconds, {std::ssize(arms_)});
  ++layers_seen_;
}

}  // namespace oscar
