// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "capture/checkpoint/gguf/gguf_architectures.h"

namespace oscar {

const std::string& GgufFields::Read(std::string_view key) { return *read_.insert(Full(key)).first; }

std::optional<uint64_t> GgufFields::Count(std::string_view key) {
  return model_.header().Count(Read(key));
}

uint64_t GgufFields::NeedCount(std::string_view key) {
  const std::optional<uint64_t> count = Count(key);
  if (!count) model_.Fail(fmt::format("{} is missing: an integer is needed", Full(key)));
  return *count;
}

// The shortest decimal of a float32 is the value that the converter received.
std::optional<double> GgufFields::Number(std::string_view key) {
  const std::optional<double> value = model_.header().Number(Read(key));
  if (!value || static_cast<double>(static_cast<float>(*value)) != *value) return value;
  return std::stod(fmt::format("{}", static_cast<float>(*value)));
}

std::optional<std::string> GgufFields::String(std::string_view key) {
  const auto text = model_.header().String(Read(key));
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

Json GgufFields::Scalar(std::string_view key) {
  const GgufValue& value = model_.header().entries.find(Read(key))->second;
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  if (std::holds_alternative<double>(value)) return *Number(key);
  return *OfAllLayers(key);
}

std::optional<std::vector<bool>> GgufFields::Bools(std::string_view key) {
  return model_.header().Bools(Read(key));
}

std::optional<std::vector<uint64_t>> GgufFields::EachLayer(std::string_view key) {
  const auto entry = model_.header().entries.find(Read(key));
  if (entry == model_.header().entries.end()) return std::nullopt;
  const uint64_t layers = num_blocks();
  if (!std::holds_alternative<GgufArray>(entry->second)) return std::vector(layers, *Count(key));
  auto values = *model_.header().Counts(Full(key));
  if (values.size() != layers) {
    model_.Fail(fmt::format("{} has {} values, but the model has {} layers", Full(key),
                            values.size(), layers));
  }
  return values;
}

std::optional<uint64_t> GgufFields::OfAllLayers(std::string_view key) {
  const auto values = EachLayer(key);
  if (!values) return std::nullopt;
  for (const uint64_t value : *values) {
    if (value == values->front()) continue;
    model_.Fail(
        fmt::format("{} is not the same for all layers ({} and {}), which is not "
                    "implemented for this architecture",
                    Full(key), values->front(), value));
  }
  return values->front();
}

uint64_t GgufFields::num_blocks() {
  constexpr uint64_t kMost = 4096;
  const uint64_t blocks = NeedCount("block_count");
  if (blocks > 0 && blocks <= kMost) return blocks;
  model_.Fail(fmt::format("{} must be from 1 to {}, found {}", Full("block_count"), kMost, blocks));
}

uint64_t GgufFields::num_layers() {
  const uint64_t blocks = num_blocks(), predicting = Count("nextn_predict_layers").value_or(0);
  if (predicting < blocks) return blocks - predicting;
  model_.Fail(fmt::format("{} must be less than {} blocks", Full("nextn_predict_layers"), blocks));
}

uint64_t GgufFields::num_kv_heads() {
  return OfAllLayers("attention.head_count_kv").value_or(num_heads());
}

uint64_t GgufFields::head_dim() {
  if (const auto dim = Count("attention.key_length")) return *dim;
  const uint64_t width = NeedCount("embedding_length"), heads = num_heads();
  if (heads == 0 || width % heads != 0)
    model_.Fail(fmt::format("{} must divide the {} values of a token", Full("attention.head_count"),
                            width));
  return width / heads;
}

}  // namespace oscar
