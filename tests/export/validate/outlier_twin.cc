// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/validate/outlier_twin.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "capture/files/strict_json.h"
#include "capture/model/run/device.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}
  std::vector<int64_t> Permutation(int64_t n, int64_t first) {
    const at::Tensor p = at::randperm(n, generator_);
    return {p.const_data_ptr<int64_t>(), p.const_data_ptr<int64_t>() + first};
  }
  double PowerOfTwo(int64_t low, int64_t high) {
    return std::exp2(at::randint(low, high, {1}, generator_).item<int64_t>());
  }

 private:
  at::Generator generator_;
};

}  // namespace

void WriteOutlierTwin(const fs::path& from, const fs::path& to, uint64_t seed) {
  const Json config = ReadJsonFile((from / "config.json").string());
  const auto count = [&](const char* key) { return config.at(key).get<int64_t>(); };
  const int64_t q_heads = count("num_attention_heads"), kv_heads = count("num_key_value_heads"),
                d = count("head_dim"), ratio = q_heads / kv_heads;
  const SafetensorsFile file = SafetensorsFile::Open(from / "model.safetensors");
  std::map<std::string, at::Tensor> weights;
  std::vector<SafetensorsWriter::Declaration> declarations;
  for (const auto& [name, info] : file.tensors()) {
    const TensorView view = file.tensor(name);
    at::Tensor tensor = at::empty(view.shape, ToScalarType(view.dtype, name));
    std::memcpy(tensor.mutable_data_ptr(), view.data.data(), view.data.size());
    weights[name] = tensor;
    declarations.push_back({name, view.dtype, view.shape});
  }

  Random random(seed);
  for (int64_t layer = 0; layer < count("num_hidden_layers"); ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".self_attn.";
    const auto weight = [&](const char* name) { return weights.at(prefix + name + ".weight"); };
    const std::vector<int64_t> pairs = random.Permutation(d / 2, std::max<int64_t>(2, d / 32));
    std::vector<double> factors;
    for (size_t i = 0; i < pairs.size(); ++i) factors.push_back(random.PowerOfTwo(2, 5));
    for (size_t i = 0; i < pairs.size(); ++i) {
      for (const int64_t channel : {pairs[i], pairs[i] + d / 2}) {
        weight("k_norm")[channel].mul_(factors[i]);
        weight("q_norm")[channel].div_(factors[i]);
      }
    }
    for (int64_t head = 0; head < kv_heads; ++head) {
      for (const int64_t channel : random.Permutation(d, std::max<int64_t>(1, d / 64))) {
        const double factor = random.PowerOfTwo(1, 4);
        weight("v_proj")[head * d + channel].mul_(factor);
        for (int64_t q = head * ratio; q < (head + 1) * ratio; ++q)
          weight("o_proj").select(1, q * d + channel).div_(factor);
      }
    }
  }

  fs::create_directories(to);
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(from / name, to / name);
  SafetensorsWriter writer(to / "model.safetensors", declarations);
  for (const auto& declaration : declarations) {
    const at::Tensor& tensor = weights.at(declaration.name);
    writer.Write(declaration.name, {static_cast<const std::byte*>(tensor.const_data_ptr()),
                                    static_cast<size_t>(tensor.nbytes())});
  }
  writer.Commit();
}

}  // namespace oscar
