// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/tensor_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                          "_checkpoint_wrapped_module."};

// Removes prefixes: "module.model._orig_mod.norm.weight" becomes "model.norm.weight".
std::string WithoutWrappers(std::string name) {
  for (const std::string_view wrapper : kWrappers) {
    for (size_t at = name.find(wrapper); at != name.npos; at = name.find(wrapper, at)) {
      if (at == 0 || name[at - 1] == '.') {
        name.erase(at, wrapper.size());
      } else {
        at += wrapper.size();
      }
    }
  }
  while (name.starts_with("module.")) name.erase(0, sizeof("module.") - 1);
  return name;
}

bool AnyStartsWith(const std::vector<std::string>& names,
                   std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    return std::ranges::any_of(beginnings, [&](std::string_view b) { return name.starts_with(b); });
  });
}

}  // namespace

std::vector<std::string> NamesToReadBy(const std::vector<std::string>& stored,
                                       const std::string& what) {
  std::vector<std::string> names;
  for (const std::string& name : stored) names.push_back(WithoutWrappers(name));
  if (!AnyStartsWith(names, {"model."}) &&
      AnyStartsWith(names, {"layers.0.", "embed_tokens.", "language_model.layers.0.",
                            "language_model.embed_tokens."})) {
    for (std::string& name : names)
      if (!name.starts_with("lm_head.")) name.insert(0, "model.");
  }
  std::set<std::string_view> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (seen.insert(names[i]).second) continue;
    throw InputError(
        fmt::format("{}: tensor {} appears twice, with and without the prefix that a PyTorch "
                    "wrapper adds to names; save the model again",
                    what, Quoted(names[i])));
  }
  return names;
}

}  // namespace oscar
