// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/chosen_cache.h"
#include "export/simulate/methods/methods.h"

namespace oscar {
namespace {

LayerCache MakeChoice(const MethodContext& context, size_t layer_index, const ArmOptions& options) {
  return ChoiceCache(ChoiceOf(context, layer_index),
                     context.layers()[layer_index].attention.num_kv_heads,
                     ArmWindows(context, options));
}

CacheCost HeadlineCost(const MethodContext& context, const ArmOptions& options, int64_t tokens) {
  return ChoiceCost(context, options.windows ? context.options().windows : CacheWindows{}, tokens,
                    [&](size_t i) { return ChoiceOf(context, i); });
}

}  // namespace

CacheMethod AutoChoiceMethod() {
  return {
      .name = "auto",
      .description = "what oscar-calibrate chose, in bf16 arithmetic",
      .takes_clip = false,
      .as_published = {.windows = true},
      .make = MakeChoice,
      .cost = HeadlineCost,
      .available = [](const MethodContext& context) { return context.artifact().has_choices(); }};
}

}  // namespace oscar
