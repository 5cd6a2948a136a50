// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/chosen_cache.h"
#include "export/simulate/methods/methods.h"

namespace oscar {
namespace {

StoredChoice ChoiceNamed(const MethodContext& context, size_t layer_index,
                         const std::string& name) {
  if (name == kHeadlineChoice) return ChoiceOf(context, layer_index);
  return context.artifact().ReadChoice(context.layers()[layer_index].layer_id, name);
}

}  // namespace

CacheMethod ChoiceMethod(const std::string& choice) {
  return {
      .name = "auto",
      .description = "automatic choice of oscar-calibrate, in bf16 arithmetic",
      .takes_clip = false,
      .as_published = {.windows = true},
      .make =
          [choice](const MethodContext& context, size_t layer_index, const ArmOptions& options) {
            return ChoiceCache(ChoiceNamed(context, layer_index, choice),
                               context.layers()[layer_index].attention.num_kv_heads,
                               ArmWindows(context, options));
          },
      .cost =
          [choice](const MethodContext& context, const ArmOptions& options, int64_t tokens) {
            return ChoiceCost(context, options.windows ? context.options().windows : CacheWindows{},
                              tokens, [&](size_t i) { return ChoiceNamed(context, i, choice); });
          },
      .available = [](const MethodContext& context) { return context.artifact().has_choices(); }};
}

CacheMethod AutoChoiceMethod() { return ChoiceMethod(std::string(kHeadlineChoice)); }

}  // namespace oscar
