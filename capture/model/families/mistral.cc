// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mistral 7B and its dense successors of the same model_type: no biases, and either all layers
// slide or none. "sliding_window": null means full attention, but a missing sliding_window means
// 4096 (transformers' MistralConfig), so the two must be distinguished.
#include "capture/model/families/dense_decoder.h"

namespace oscar {

ModelSpec ReadMistral(ConfigReader& config) {
  constexpr int64_t kWindowIfMissing = 4096;
  DenseDecoderOptions options;
  std::optional<int64_t> window = config.OptionalSize("sliding_window");
  if (!config.Has("sliding_window")) window = kWindowIfMissing;
  options.windows = ReadUniformWindows(config, window);
  return ReadDenseDecoder(config, options);
}

}  // namespace oscar
