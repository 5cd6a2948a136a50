// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "capture/checkpoint/gguf/gguf_model.h"
#include "capture/model/spec/model_spec.h"
#include "tests/fuzz/harness/harnesses.h"

namespace oscar::fuzz {
namespace {

// Returns whether `order` is a permutation of [0, size).
bool IsOrder(const std::vector<int64_t>& order, int64_t size) {
  if (std::ssize(order) != size) return false;
  std::vector<bool> seen(static_cast<size_t>(size));
  for (const int64_t place : order) {
    if (place < 0 || place >= size || seen[static_cast<size_t>(place)]) return false;
    seen[static_cast<size_t>(place)] = true;
  }
  return true;
}

// Checks that each weight of an accepted model consists of bytes that exist, has as many values as
// its shape, and has each row and column once. Its configuration is read or refused like any other.
void RunGgufModel(std::string_view input) {
  std::vector<GgufFile> files;
  files.push_back(GgufFile::Open(FileOf(input, "model.gguf")));
  const GgufModel model = GgufModel::Of(std::move(files));
  for (const auto& [name, weight] : model.Weights()) {
    int64_t values = 0, rows = 0, wanted = 1;
    for (const GgufWeight::Part& part : weight.parts) {
      const GgufTensorInfo* const stored = model.Find(part.tensor);
      FUZZ_CHECK(stored != nullptr && stored->type == part.type->id);
      FUZZ_CHECK(part.begin <= stored->size && part.size <= stored->size - part.begin);
      FUZZ_CHECK(part.dense_columns() == weight.parts[0].dense_columns());
      const int64_t held = weight.matrices * part.dense_rows() * part.dense_columns();
      FUZZ_CHECK(static_cast<uint64_t>(held) == part.size / part.type->bytes * part.type->values);
      values += held;
      rows += part.dense_rows();
    }
    for (const int64_t size : weight.info.shape) wanted *= size;
    FUZZ_CHECK(wanted == values);
    FUZZ_CHECK(weight.row_order.empty() || IsOrder(weight.row_order, rows));
    FUZZ_CHECK(weight.column_order.empty() ||
               IsOrder(weight.column_order, weight.parts[0].dense_columns()));
  }
  const Json config = model.Config();
  try {
    FUZZ_CHECK(!AllTensors(ReadModelSpec(config)).empty());
  } catch (const Error&) {
    // The file is valid even if no model family takes its configuration.
  }
}

// Returns a GGUF file with integers, floats and F32 tensors, for architectures whose weights are
// split, joined or reordered.
std::string SmallGguf(const std::string& architecture,
                      const std::vector<std::pair<std::string, uint32_t>>& sizes,
                      const std::vector<std::pair<std::string, std::vector<uint64_t>>>& tensors) {
  std::string out = "GGUF";
  const auto number = [&](auto value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto text = [&](const std::string& value) {
    number(uint64_t{value.size()});
    out += value;
  };
  number(uint32_t{3});
  number(uint64_t{tensors.size()});
  number(uint64_t{sizes.size() + 2});
  text("general.architecture");
  number(uint32_t{kString});
  text(architecture);
  text(architecture + ".attention.layer_norm_rms_epsilon");
  number(uint32_t{kFloat32});
  number(1e-5F);
  for (const auto& [key, value] : sizes) {
    text(architecture + "." + key);
    number(uint32_t{kUint32});
    number(value);
  }
  uint64_t at = 0;
  for (const auto& [name, dims] : tensors) {
    text(name);
    number(static_cast<uint32_t>(dims.size()));
    uint64_t bytes = sizeof(float);
    for (const uint64_t dim : dims) {
      number(dim);
      bytes *= dim;
    }
    number(uint32_t{kGgmlF32});
    number(at);
    at += GgufPadded(bytes, 32);
  }
  out.resize(GgufPadded(out.size(), 32) + at, '\0');
  return out;
}

std::vector<std::string> GgufModelSeeds() {
  using Sizes = std::vector<std::pair<std::string, uint32_t>>;
  const Sizes common = {{"block_count", 1},     {"embedding_length", 4},
                        {"context_length", 64}, {"attention.head_count", 2},
                        {"rope.freq_base", 10}, {"feed_forward_length", 2}};
  const auto with = [&](Sizes more) {
    more.insert(more.begin(), common.begin(), common.end());
    return more;
  };
  return {SmallGguf("llama", with({{"attention.head_count_kv", 1}}),
                    {{"token_embd.weight", {4, 3}},
                     {"blk.0.attn_q.weight", {4, 4}},
                     {"blk.0.attn_k.weight", {4, 2}},
                     {"blk.0.attn_norm.weight", {4}}}),
          SmallGguf("qwen35",
                    with({{"ssm.group_count", 1},
                          {"ssm.time_step_rank", 2},
                          {"ssm.state_size", 1},
                          {"ssm.inner_size", 2},
                          {"ssm.conv_kernel", 2}}),
                    {{"token_embd.weight", {4, 3}},
                     {"blk.0.attn_qkv.weight", {4, 4}},
                     {"blk.0.ssm_out.weight", {2, 4}},
                     {"blk.0.ssm_conv1d.weight", {2, 4}},
                     {"blk.0.ssm_a", {2}}}),
          SmallGguf("gpt-oss", with({{"expert_count", 2}, {"expert_used_count", 1}}),
                    {{"token_embd.weight", {4, 3}},
                     {"blk.0.ffn_gate_exps.weight", {4, 2, 2}},
                     {"blk.0.ffn_up_exps.weight", {4, 2, 2}},
                     {"blk.0.ffn_down_exps.weight", {2, 4, 2}}}),
          SmallGguf("deepseek2",
                    with({{"rope.dimension_count", 2},
                          {"attention.key_length_mla", 4},
                          {"attention.value_length_mla", 2},
                          {"attention.kv_lora_rank", 3},
                          {"expert_count", 2},
                          {"expert_used_count", 1}}),
                    {{"token_embd.weight", {4, 3}},
                     {"blk.0.attn_k_b.weight", {2, 3, 2}},
                     {"blk.0.attn_v_b.weight", {3, 2, 2}},
                     {"blk.0.ffn_gate_exps.weight", {4, 2, 2}}})};
}

// Replaces small numbers by others, wherever four bytes look like one.
std::string MutateGgufModel(const std::string& input, Random& random) {
  if (random() % 3 == 0) return MutateBytes(input, 4096, random);
  std::string out = input;
  for (uint64_t i = 0; i <= random() % 2; ++i) {
    size_t at = random() % out.size();
    while (at + 4 < out.size() && !(static_cast<uint8_t>(out[at]) < 65 && out[at + 1] == 0 &&
                                    out[at + 2] == 0 && out[at + 3] == 0))
      ++at;
    if (at + 4 < out.size()) out[at] = static_cast<char>(random() % 9);
  }
  return out;
}

}  // namespace

const Harness kGgufModel = {"gguf_model", RunGgufModel, GgufModelSeeds, MutateGgufModel, 4096};

}  // namespace oscar::fuzz
