// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/zoo_hint.h"

#include <fmt/format.h>

#include <cstdlib>

#include "capture/checkpoint/model_location.h"
#include "linalg/base/error.h"
#include "zoo/show/fitting.h"
#include "zoo/source/zoo_source.h"

namespace oscar {

std::string ZooHint(const std::string& model) {
  const char* zoo = std::getenv("OSCAR_ZOO");
  if (zoo == nullptr || *zoo == 0) return "";
  try {
    const ZooSource source =
        OpenSource(zoo, {.connect_seconds = 3, .stall_seconds = 5, .max_failures = 1});
    const ZooIndex index = source.index();
    const std::vector<Fitting> found =
        FindFitting(index, DigestsOfModel(ResolveModel(model).directory));
    if (found.empty()) return "";
    const IndexRow& row = *found[0].row;
    return fmt::format(
        "{} already has rotations for this checkpoint ({}{}{}): oscar-zoo pull {}/{}@sha256:{}",
        zoo, row.text(), row.kl ? fmt::format(", KL {:.4g}", *row.kl) : "",
        found[0].weights_known ? "" : "; its weights were not compared", source.address,
        row.name.text(), row.identity);
  } catch (const Error& error) {
    return fmt::format("OSCAR_ZOO could not be searched: {}", error.what());
  }
}

}  // namespace oscar
