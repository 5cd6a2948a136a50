// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/cache_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "export/artifact/artifact_format.h"
#include "export/artifact/cache_type_record.h"
#include "export/artifact/layer_record.h"
#include "linalg/base/error.h"

namespace oscar {

namespace {

bool EqualWidths(const Artifact& artifact, int64_t layer_id) {
  const Json& geometry = LayerRecordOf(JsonMember(artifact.manifest(), "geometry", kManifestFile),
                                       static_cast<int>(layer_id), kManifestFile);
  return JsonInt(geometry, "head_dim", kManifestFile) ==
         JsonInt(geometry, "v_head_dim", kManifestFile);
}

std::vector<LayerBits> BitsOf(const Artifact& artifact) {
  std::vector<LayerBits> layers;
  const auto most = [](const Json& layer, const char* key) {
    const Json& bits = JsonMember(layer, key, kManifestFile);  // a number, or one for each KV head
    if (!bits.is_array()) return static_cast<int>(JsonInt(layer, key, kManifestFile));
    int64_t largest = 0;
    for (const Json& of_head : bits) {
      if (!of_head.is_number_integer())
        throw InputError(fmt::format("{}: {}: {}", kManifestFile, key, bits.dump()));
      largest = std::max(largest, of_head.get<int64_t>());
    }
    return static_cast<int>(largest);
  };
  for (const Json& layer : JsonMember(artifact.Choice(), "layers", kManifestFile)) {
    const int64_t id = JsonInt(layer, "layer_id", kManifestFile);
    layers.push_back({.layer_id = id,
                      .k = most(layer, "k_bits"),
                      .v = most(layer, "v_bits"),
                      .equal_widths = EqualWidths(artifact, id)});
  }
  return layers;
}

}  // namespace

BitsByLayer BitsFor(const Artifact& artifact, std::string_view exporter, double bits) {
  const std::optional<CacheTypeRecord> record = CacheTypesOf(artifact);
  const auto types = record ? TypesFor(*record, exporter, bits) : std::nullopt;
  if (bits != 0 && !types) {
    throw InputError(
        fmt::format("{}: contains no costs of cache types for {}, so types cannot be chosen for a "
                    "budget; measure the costs with oscar-calibrate --for {} --bits B",
                    artifact.directory().string(), exporter, exporter));
  }
  if (!types) return {BitsOf(artifact)};
  BitsByLayer of_types{.layers = {}, .typed = true};
  for (size_t i = 0; i < types->size(); ++i) {
    const int64_t id = record->layers[i].layer_id;
    of_types.layers.push_back({.layer_id = id,
                               .k = CodeBits((*types)[i].k),
                               .v = CodeBits((*types)[i].v),
                               .equal_widths = EqualWidths(artifact, id)});
  }
  return of_types;
}

std::string RangesText(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    for (end = begin + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) ++end;
    text += fmt::format("{}{}", begin == 0 ? "" : ",", numbers[begin]);
    if (end - begin > 1) text += fmt::format("-{}", numbers[end - 1]);
  }
  return text;
}

}  // namespace oscar
