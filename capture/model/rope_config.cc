// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/rope_config.h"

#include <fmt/format.h>

#include <cmath>

#include "linalg/error.h"

namespace oscar {
namespace {

constexpr std::string_view kSupported = "default, linear, llama3";

// One of rope_scaling and rope_parameters; `theta` from outside of it, if any.
RopeSpec ReadRopeObject(const Json& object, const std::string& what, std::optional<double> theta) {
  ConfigReader reader(object, what);
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      reader.Fail(
          key, fmt::format("is not implemented: a rotary embedding per layer type. Supported: {}",
                           kSupported));
    }
  }
  // "type" is the spelling before transformers 4.45.
  const std::string old_spelling = reader.String("type", "");
  const std::string type =
      reader.String("rope_type", old_spelling.empty() ? "default" : old_spelling);
  if (!old_spelling.empty() && old_spelling != type) reader.Fail("type", "contradicts rope_type");

  RopeSpec rope;
  if (type == "linear") {
    rope.kind = RopeKind::kLinear;
    rope.factor = reader.Positive("factor");
  } else if (type == "llama3") {
    rope.kind = RopeKind::kLlama3;
    rope.factor = reader.Positive("factor");
    rope.low_freq_factor = reader.Positive("low_freq_factor");
    rope.high_freq_factor = reader.Positive("high_freq_factor");
    rope.original_max_positions = reader.Positions("original_max_position_embeddings");
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      reader.Fail("high_freq_factor",
                  fmt::format("must be above low_freq_factor {}", rope.low_freq_factor));
    }
  } else if (type != "default") {
    reader.Fail(
        object.contains("rope_type") ? "rope_type" : "type",
        fmt::format("is not implemented: rotary embedding '{}'. Supported: {}", type, kSupported));
  }
  if (rope.factor < 1) reader.Fail("factor", "must be at least 1");
  const auto own_theta = reader.OptionalPositive("rope_theta");
  if (own_theta && theta && *own_theta != *theta) {
    reader.Fail("rope_theta", fmt::format("contradicts the rope_theta {} beside it", *theta));
  }
  if (own_theta) theta = own_theta;
  if (!theta) reader.Fail("rope_theta", "is missing: a number is needed");
  rope.theta = *theta;
  reader.Finish({});  // partial_rotary_factor and whatever is unknown
  return rope;
}

}  // namespace

RopeSpec ReadRope(ConfigReader& config, int64_t head_dim, std::optional<double> default_theta) {
  std::optional<double> theta = config.OptionalPositive("rope_theta");
  const Json* scaling = config.Find("rope_scaling");
  const Json* parameters = config.Find("rope_parameters");
  const auto read = [&](const Json& object, const char* key) {
    return ReadRopeObject(object, fmt::format("{}: {}", config.what(), key), theta);
  };
  if (!theta &&
      (parameters == nullptr || !parameters->is_object() || !parameters->contains("rope_theta"))) {
    theta = default_theta;
  }
  RopeSpec rope;
  if (parameters != nullptr) {
    rope = read(*parameters, "rope_parameters");
    theta = rope.theta;
    if (scaling != nullptr && !(read(*scaling, "rope_scaling") == rope)) {
      config.Fail("rope_scaling", "contradicts rope_parameters");
    }
  } else if (scaling != nullptr) {
    rope = read(*scaling, "rope_scaling");
  } else {
    rope.theta = theta ? *theta : config.Positive("rope_theta");
  }
  if (head_dim % 2 != 0)
    config.Fail("head_dim", fmt::format("must be even for a rotary embedding, is {}", head_dim));
  rope.rotary_dim = head_dim;
  return rope;
}

}  // namespace oscar
