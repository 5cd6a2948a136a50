// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks the files of one folder against each other and against the model.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_pair.h"
#include "linalg/base/error.h"
#include "zoo/lint/lint_pt.h"

namespace oscar {
namespace {

using Files = std::vector<const PtFacts*>;

LintPlace PlaceOf(const PtFacts& file) { return {file.path, {}, {}, ""}; }

std::string NameOf(const PtFacts& file) { return file.path.filename().string(); }

// Returns the part of a file name that a calibration's K and V files share: the name without the
// side and the statistic.
std::string PairKey(const PtFacts& file) {
  std::string key = NameOf(file).substr(1);
  for (const char* statistic : {"_qqt", "_sst", "_ktk", "_vtv"}) {
    if (const size_t at = key.find(statistic); at != key.npos) key.erase(at, 4);
  }
  return key;
}

std::vector<int64_t> Missing(const std::vector<int64_t>& all, const std::vector<int64_t>& some) {
  std::vector<int64_t> missing;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(),
                      std::back_inserter(missing));
  return missing;
}

void LintPair(const PtFacts& k, const PtFacts& v, LintSink* sink) {
  if (!k.file || !v.file) return;  // an unreadable file has its own finding
  bool same_layers = true;
  for (const auto& [file, partner] : {std::pair(&k, &v), std::pair(&v, &k)}) {
    const std::vector<int64_t> missing = Missing(partner->ids(), file->ids());
    if (missing.empty()) continue;
    same_layers = false;
    sink->Add("missing-layer", PlaceOf(*file), "has no layer " + ListIds(missing),
              fmt::format("the layers of its partner {}", NameOf(*partner)));
  }
  if (!same_layers) return;
  try {
    CheckRotationPair({*k.file, *v.file});
  } catch (const InputError& error) {
    sink->Add("pair-mismatch", PlaceOf(v), error.what());
  }
}

// Pairs K and V files of the same name; one K and one V file are always a pair.
void LintPairs(const Files& group, bool complete, LintSink* sink) {
  Files sides[2];
  for (const PtFacts* file : group) {
    if (file->side != 0) sides[file->side == 'v'].push_back(file);
  }
  if (sides[0].size() == 1 && sides[1].size() == 1) {
    LintPair(*sides[0][0], *sides[1][0], sink);
    return;
  }
  std::map<std::string, Files> by_key;
  for (const Files& side : sides) {
    for (const PtFacts* file : side) by_key[PairKey(*file)].push_back(file);
  }
  for (const auto& [key, files] : by_key) {
    if (files.size() == 2 && files[0]->side != files[1]->side) {
      LintPair(*files[0], *files[1], sink);
    } else if (complete) {
      for (const PtFacts* file : files) {
        sink->Add("unpaired", PlaceOf(*file),
                  fmt::format("no {} file next to it", file->side == 'k' ? 'V' : 'K'),
                  "both files of a calibration in one folder");
      }
    }
  }
}

void LintGroupings(const Files& shared, const Files& per_head, LintSink* sink) {
  if (shared.empty() || per_head.empty()) return;
  sink->Add("shared-and-per-head", {shared[0]->path.parent_path(), {}, {}, ""},
            fmt::format("the {} rotations are shared, the {} rotations are per head",
                        NameOf(*shared[0]), NameOf(*per_head[0])),
            "one pair per folder");
  for (const PtFacts* file : per_head) {
    double diagonal = 0, random = 0;
    for (const RotationLayer& layer : file->file->layers) {
      const MatrixStack stack = StackOf(layer.rotation->shape, "rotation");
      diagonal += MeanDiagonal(layer.rotation->values, stack.count, stack.dim);
      random += RandomDiagonal(stack.dim);
    }
    const auto layers = static_cast<double>(file->file->layers.size());
    if (diagonal < 2 * random) {
      sink->Add("heads-disagree", PlaceOf(*file),
                fmt::format("mean |diag(R_i^T R_j)| of the heads is {:.3f}, that of unrelated "
                            "rotations {:.3f}: the shared pair next to it fits no head well",
                            diagonal / layers, random / layers));
    }
  }
}

void LintMla(const Files& files, const LintOptions& options, LintSink* sink) {
  if (files.empty()) return;
  const LintPlace place{files[0]->path.parent_path(), {}, {}, ""};
  const auto dim = [](const PtFacts& file) { return file.file->layers[0].rotation->shape[0]; };
  std::vector<LayerShape> layers;
  for (const PtFacts* file : files) {
    if (dim(*file) != dim(*files[0])) {
      sink->Add("malformed", PlaceOf(*file), fmt::format("{} latent dimensions", dim(*file)),
                fmt::format("{}, as {} has", dim(*files[0]), NameOf(*files[0])));
    }
    layers.push_back({file->file->layers[0].layer_id, 0, 0});
  }
  LintLayers(layers, 0, place, options, sink);
}

}  // namespace

void LintLayers(const std::vector<LayerShape>& layers, char side, const LintPlace& place,
                const LintOptions& options, LintSink* sink) {
  std::map<int64_t, LayerShape> found;
  std::vector<int64_t> ids;
  for (const LayerShape& layer : layers) {
    if (found.emplace(layer.layer_id, layer).second) ids.push_back(layer.layer_id);
  }
  std::sort(ids.begin(), ids.end());
  if (!options.model) {
    if (const std::string gap = LayerGap(ids); !gap.empty())
      sink->Add("layer-gap", place, gap, "contiguous or evenly spaced ids, or the model");
    return;
  }
  std::vector<int64_t> expected;
  for (const LayerSpec& layer : options.model->spec.layers) expected.push_back(layer.layer_id);
  if (const auto missing = Missing(expected, ids); !missing.empty())
    sink->Add("missing-layer", place, "has no layer " + ListIds(missing),
              "every layer of the model");
  if (const auto extra = Missing(ids, expected); !extra.empty())
    sink->Add("extra-layer", place, "has layer " + ListIds(extra), "only layers of the model");
  for (const LayerSpec& layer : options.model->spec.layers) {
    const auto at = found.find(layer.layer_id);
    if (at == found.end() || at->second.dim == 0) continue;
    const AttentionSpec& attention = layer.attention;
    const int64_t dim = side == 'v' ? attention.v_head_dim : attention.head_dim;
    const int64_t heads = at->second.num_kv_heads;
    if (at->second.dim == dim && (heads == 0 || heads == attention.num_kv_heads)) continue;
    LintPlace where = place;
    where.layer_id = layer.layer_id;
    sink->Add("model-mismatch", where,
              heads == 0 ? fmt::format("shared rotation of dimension {}", at->second.dim)
                         : fmt::format("{} KV heads of dimension {}", heads, at->second.dim),
              fmt::format("{} KV heads of dimension {}", attention.num_kv_heads, dim));
  }
}

void LintPtFolder(const std::vector<PtFacts>& files, bool complete, const LintOptions& options,
                  LintSink* sink) {
  Files shared, per_head, mla, unread;
  for (const PtFacts& file : files) {
    if (file.mla()) mla.push_back(&file);
    if (!file.file) unread.push_back(&file);
    if (!file.rotations()) continue;
    (file.per_head() ? per_head : shared).push_back(&file);
    std::vector<LayerShape> layers;
    for (const RotationLayer& layer : file.file->layers) {
      const MatrixStack stack = StackOf(layer.rotation->shape, "rotation");
      layers.push_back({layer.layer_id, stack.per_head ? stack.count : 0, stack.dim});
    }
    LintLayers(layers, file.side, PlaceOf(file), options, sink);
  }
  LintMla(mla, options, sink);
  LintGroupings(shared, per_head, sink);
  // A file that cannot be read may be the missing partner of a file in either group.
  for (Files* group : {&shared, &per_head}) {
    if (group->empty()) continue;
    group->insert(group->end(), unread.begin(), unread.end());
    LintPairs(*group, complete, sink);
  }
}

}  // namespace oscar
