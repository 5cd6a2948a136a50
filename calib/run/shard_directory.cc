// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/shard_directory.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "calib/run/layer_parts.h"
#include "calib/run/provenance.h"
#include "capture/files/atomic_file.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

void CheckFile(const fs::path& path, const FileDigest& expected) {
  if (fs::exists(path) && DigestFile(path) == expected) return;
  throw InputError(
      fmt::format("{}: damaged or missing; {} says {} bytes with SHA-256 {}; make this shard again",
                  path.string(), kShardFile, expected.size, expected.sha256));
}

void CheckSize(const fs::path& path, const FileDigest& expected) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (!error && size == expected.size) return;
  throw InputError(fmt::format("{}: {}, but {} says {} bytes; make this shard again", path.string(),
                               error ? "missing" : fmt::format("has {} bytes", size), kShardFile,
                               expected.size));
}

at::Tensor EmptyExpansion(const CalibrationInput& input, size_t layer_index) {
  const AttentionSpec& a = input.model()->loop().spec().layers[layer_index].attention;
  if (!a.latent) return {};
  return at::empty({a.num_q_heads, a.v_head_dim, a.latent->rank},
                   at::dtype(input.dtype).device(input.device));
}

}  // namespace

std::vector<NamedTensor> TensorsOfShard(const LayerOnDevice& part) {
  std::vector<NamedTensor> tensors = TensorsOf(part);
  if (part.layer.w_uv.defined()) tensors.push_back({"w_uv", part.layer.w_uv});
  return tensors;
}

at::Tensor TextHiddenOf(const CalibrationInput& input) {
  const ModelSource& model = *input.model();
  const RankShare& own = input.ranks.own();
  std::vector<at::Tensor> rows;
  if (!HasTextLoss(model)) return {};
  for (const auto& [sequence, tokens] : TextSampleOf(input.lengths())) {
    if (own.Has(sequence))
      rows.push_back(RowsOf(model, sequence - own.first_sequence, tokens).hidden);
  }
  return rows.empty() ? at::Tensor() : at::cat(rows).cpu();
}

void PublishShard(JobDirectory& job, const ShardPlace& place, const RankShare& share,
                  const Json& run, const Json& weights, const Json& timings, const fs::path& path) {
  const ShardDocument shard = {.place = place,
                               .share = share,
                               .files = job.files(),
                               .run = run,
                               .weights = weights,
                               .timings = timings};
  WriteFileAtomically(job.path() / kShardFile, CanonicalJson(shard.ToJson()));
  job.MoveTo(path);
}

bool IsShardOf(const fs::path& path, const ShardPlace& place, const Json& run) {
  if (!fs::exists(path)) return false;
  if (ShardSet::LooksLikeOne(path)) {
    const ShardDocument shard = ShardDocument::Read(path);
    if (shard.place == place && shard.run == run) return true;
  }
  throw InputError(
      fmt::format("{}: exists already, and is not {} of this run; remove it, or give "
                  "another -o",
                  path.string(), place.Name()));
}

bool ShardSet::LooksLikeOne(const fs::path& path) { return fs::exists(path / kShardFile); }

ShardSet ShardSet::Open(const std::vector<fs::path>& directories) {
  ShardSet set;
  for (const fs::path& path : directories) {
    if (!LooksLikeOne(path)) {
      const bool job = fs::exists(path / kFingerprintFile);
      throw InputError(fmt::format(
          "{}: {}", path.string(),
          job ? "not finished; run that shard again to continue it"
              : fmt::format("not a shard of a calibration, because it has no {}", kShardFile)));
    }
    set.shards_.push_back({path, ShardDocument::Read(path)});
    const std::vector<FileDigest>& layers = set.shards_.back().document.files.layers;
    for (size_t i = 0; i < layers.size(); ++i) CheckSize(path / LayerFileName(i), layers[i]);
  }
  std::ranges::stable_sort(set.shards_, {},
                           [](const Shard& shard) { return shard.document.place.number; });
  const ShardPlace first = set.shards_.front().document.place;
  const int count = first.count;
  std::vector<int> missing;
  auto next = set.shards_.begin();
  for (int number = 1; next != set.shards_.end() || number <= count; ++number) {
    const ShardPlace place = next == set.shards_.end() ? ShardPlace() : next->document.place;
    if (next == set.shards_.end() || (place.count == count && place.number > number)) {
      missing.push_back(number);
      continue;
    }
    if (place.count != count) {
      throw InputError(fmt::format("{} is {}, but {} is {}; they belong to different runs",
                                   set.shards_.front().path.string(), first.Name(),
                                   next->path.string(), place.Name()));
    }
    if (place.number < number) {
      throw InputError(fmt::format("{} was given twice: {} and {}", place.Name(),
                                   std::prev(next)->path.string(), next->path.string()));
    }
    ++next;
  }
  if (!missing.empty()) {
    throw InputError(fmt::format("shard{} {} of {} {} missing", missing.size() > 1 ? "s" : "",
                                 fmt::join(missing, ", "), count,
                                 missing.size() > 1 ? "are" : "is"));
  }
  for (const Shard& shard : set.shards_) set.shares_.push_back(shard.document.share);
  return set;
}

Json ShardSet::timings() const {
  Json all = Json::array();
  for (const Shard& shard : shards_) all.push_back(shard.document.timings);
  return all;
}

namespace {

// Removes the options that only affect choices after observation, because a merge may change them:
// for example, it may have other --bits than its shards.
Json WhatIsObserved(Json run) {
  if (!run.contains("/options/auto"_json_pointer)) return run;
  for (const char* option : {"for", "fold", "feedback", "bits", "budgets", "bits_of", "bits_by",
                             "clip_of", "context", "effort", "windows"})
    run["options"]["auto"].erase(option);
  return run;
}

}  // namespace

void ShardSet::CheckRun(const Json& run, size_t num_layers,
                        const std::vector<int64_t>& lengths) const {
  for (const Shard& shard : shards_) {
    const std::string differences =
        ReadableDifferences(WhatIsObserved(shard.document.run), WhatIsObserved(run));
    if (differences.empty()) continue;
    throw InputError(
        fmt::format("{} belongs to a run with other options ('was' is the shard's value, 'now' is "
                    "yours):{}\ngive --merge the options that all shards were made with",
                    shard.path.string(), differences));
  }
  size_t sequence = 0;
  int64_t token = 0;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const RankShare& share = shares_[i];
    bool fits = shards_[i].document.files.layers.size() == num_layers &&
                share.first_sequence == sequence && share.first_token == token &&
                share.num_sequences <= lengths.size() - sequence;
    for (size_t n = 0; fits && n < share.num_sequences; ++n) token += lengths[sequence++];
    fits = fits && token - share.first_token == share.num_tokens &&
           (i + 1 < shards_.size() || sequence == lengths.size());
    if (!fits) {
      throw InputError(
          fmt::format("{}: its documents or layers differ from those of {}; make this shard again",
                      (shards_[i].path / kShardFile).string(), shards_[i].document.place.Name()));
    }
  }
}

void ShardSet::CheckWeights(const Json& weights) const {
  for (const Shard& shard : shards_)
    CheckSameWeights(shard.path.string(), shard.document.weights, "", weights);
}

LayerOnDevice ShardSet::ReadLayer(const CalibrationInput& input, const HeldOutSplit& split,
                                  size_t layer_index) const {
  std::vector<LayerOnDevice> parts;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const fs::path file = shards_[i].path / LayerFileName(layer_index);
    CheckFile(file, shards_[i].document.files.layers[layer_index]);
    parts.push_back(EmptyPart(input, split, layer_index, shares_[i]));
    parts.back().layer.w_uv = EmptyExpansion(input, layer_index);
    ReadTensors(file, TensorsOfShard(parts.back()));
  }
  return Together(std::move(parts), shares_, split);
}

uint64_t ShardSet::LayerBytes(size_t layer_index) const {
  uint64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.document.files.layers[layer_index].size;
  return bytes;
}

void ShardSource::Run(size_t first_layer, LayerObserver&,
                      const std::function<bool(size_t)>& after_layer) {
  for (size_t index = first_layer; index < layers().size(); ++index)
    if (!after_layer(index)) return;
}

std::vector<TextRows> ShardSet::ReadTextRows(const CalibrationInput& input) const {
  const ModelSource& model = *input.model();
  const std::vector<TextBeginning> sample = TextSampleOf(input.lengths());
  std::vector<TextRows> rows;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const Shard& shard = shards_[i];
    const JobFiles& files = shard.document.files;
    if (!files.hidden) continue;
    int64_t tokens = 0;
    for (const TextBeginning& part : sample)
      if (shares_[i].Has(part.sequence)) tokens += part.tokens;
    const fs::path file = shard.path / HiddenFileName(files.layers.size());
    CheckFile(file, *files.hidden);
    const at::Tensor hidden = at::empty({tokens, model.loop().spec().hidden_size},
                                        at::dtype(input.dtype).device(input.device));
    ReadTensors(file, {{"hidden", hidden}});
    int64_t row = 0;
    for (const TextBeginning& part : sample) {
      if (!shares_[i].Has(part.sequence)) continue;
      const std::vector<int32_t>& ids = model.sequences()[part.sequence];
      rows.push_back(
          {{ids.begin(), ids.begin() + part.tokens}, hidden.narrow(0, row, part.tokens)});
      row += part.tokens;
    }
  }
  return rows;
}

}  // namespace oscar
