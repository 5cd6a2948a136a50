// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "capture/checkpoint/quantization_config.h"
#include "capture/checkpoint/safetensors_header.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/model/spec/describe_layers.h"
#include "capture/model/spec/model_spec.h"
#include "capture/model/spec/rope_json.h"
#include "tests/fuzz/harness/harnesses.h"

namespace oscar::fuzz {
namespace {

constexpr unsigned __int128 kBeyond = static_cast<unsigned __int128>(1) << 66;

// Checks that each byte of an accepted file belongs to exactly one tensor, and that a header
// written for its tensors reads as the same tensors.
void RunSafetensors(std::string_view input) {
  const SafetensorsFile file = SafetensorsFile::Open(FileOf(input));
  std::vector<std::pair<uint64_t, const std::string*>> order;
  uint64_t bytes = 0;
  for (const auto& [name, info] : file.tensors()) {
    const TensorView view = file.tensor(name);
    unsigned __int128 bits = static_cast<uint64_t>(DTypeBits(info.dtype));
    for (const int64_t size : info.shape)
      bits = std::min(bits, kBeyond) * static_cast<uint64_t>(size);
    FUZZ_CHECK(bits == static_cast<unsigned __int128>(view.data.size()) * 8);
    volatile std::byte last{};
    if (!view.data.empty()) last = view.data.back();
    (void)last;
    bytes += info.size;
    order.emplace_back(info.offset, &name);
  }
  FUZZ_CHECK(bytes < input.size());
  std::ranges::stable_sort(order, [&](const auto& a, const auto& b) {
    const auto size = [&](const auto& x) { return file.tensors().find(*x.second)->second.size; };
    return std::pair(a.first, size(a)) < std::pair(b.first, size(b));
  });
  std::vector<SafetensorsWriter::Declaration> tensors;
  for (const auto& [offset, name] : order) {
    const TensorInfo& info = file.tensors().find(*name)->second;
    tensors.push_back({*name, info.dtype, info.shape});
  }
  const std::string header = EncodeSafetensorsHeader(tensors, file.metadata());
  const SafetensorsFile again = SafetensorsFile::Open(FileOf(header + std::string(bytes, '\0')));
  FUZZ_CHECK(again.metadata() == file.metadata());
  FUZZ_CHECK(again.tensors().size() == file.tensors().size());
  for (const auto& [name, info] : again.tensors()) {
    const TensorInfo& old = file.tensors().find(name)->second;
    FUZZ_CHECK(info.shape == old.shape && info.dtype == old.dtype && info.size == old.size);
  }
}

std::string HeaderAndData(const std::string& header, size_t bytes) {
  std::string file;
  for (size_t i = 0; i < kSafetensorsLengthBytes; ++i)
    file += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file + header + std::string(bytes, '\x5A');
}

std::vector<std::string> SafetensorsSeeds() {
  return {HeaderAndData(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24),
          HeaderAndData(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[],)"
                        R"("data_offsets":[0,2]},"b":{"dtype":"F4","shape":[4,2],"data_offsets":)"
                        R"([2,6]},"c":{"dtype":"I64","shape":[0,7],"data_offsets":[6,6]}})",
                        6),
          HeaderAndData("{} ", 0)};
}

void RunWeightIndex(std::string_view input) {
  const WeightFiles weights = ParseWeightIndex(input, "index");
  FUZZ_CHECK(!weights.files.empty() && !weights.weight_map.empty());
  for (const auto& [tensor, file] : weights.weight_map) {
    FUZZ_CHECK(std::ranges::binary_search(weights.files, file));
    FUZZ_CHECK((std::filesystem::path("/model") / file).lexically_normal() ==
               std::filesystem::path("/model/" + file));
    FUZZ_CHECK(file.find('/') == file.npos && file != ".." && file.ends_with(".safetensors"));
  }
}

std::vector<std::string> WeightIndexSeeds() {
  return {
      R"({"metadata":{"total_size":24},"weight_map":{"a.weight":"model-00001-of-00002.safetensors",)"
      R"("b.weight":"model-00002-of-00002.safetensors"}})"};
}

// Returns whether a round trip through text keeps the rotary embedding.
bool ReadsAs(const RopeSpec& rope, int64_t dim) {
  try {
    return RopeFromText(RopeToText(rope), dim, "rope") == rope;
  } catch (const Error&) {
    return false;
  }
}

// Checks that an accepted configuration only has positive sizes, that its rotary embedding survives
// a round trip through text, and that reading it twice gives the same model.
void RunConfig(std::string_view input) {
  const Json json = ParseStrictJson(input, "config.json");
  const ModelSpec spec = ReadModelSpec(json);
  FUZZ_CHECK(!spec.layers.empty());
  const std::vector<TensorNeed> needs = AllTensors(spec);
  for (const TensorNeed& need : needs) {
    FUZZ_CHECK(!need.name.empty());
    for (const int64_t size : need.shape) FUZZ_CHECK(size > 0);
  }
  for (const LayerSpec* layer : AllLayers(spec)) {
    if (layer->delta_net) continue;
    const RopeSpec& rope = layer->attention.rope;
    const int64_t dim =
        layer->attention.latent ? layer->attention.latent->rope_dim : layer->attention.head_dim;
    if (rope.rotary_dim > 0 && rope.rotary_dim <= dim && !layer->attention.latent)
      FUZZ_CHECK(ReadsAs(rope, dim));
  }
  FUZZ_CHECK(DescribeLayers(spec) == DescribeLayers(ReadModelSpec(json)));
}

// Returns the configuration with six layers, which runs faster, or unchanged if that is refused.
std::string WithFewLayers(const std::string& seed) {
  constexpr size_t kFew = 6;
  Json config = Json::parse(seed);
  const auto shorten = [&](Json& object) {
    for (auto& [key, value] : object.items()) {
      if (key.find("layers") != key.npos && value.is_number_unsigned() && value > kFew)
        value = kFew;
      if (value.is_array() && value.size() > kFew) value.erase(value.begin() + kFew, value.end());
    }
  };
  shorten(config);
  if (config.contains("text_config") && config["text_config"].is_object())
    shorten(config["text_config"]);
  const std::string shortened = config.dump();
  return Accepted({shortened}, RunConfig).empty() ? seed : shortened;
}

std::vector<std::string> ConfigSeeds() {
  std::vector<std::string> seeds = SeedFiles("families", "config.json", 8192);
  for (std::string& real : SeedFiles("configs", "config.json", 8192))
    seeds.push_back(std::move(real));
  seeds = Accepted(seeds, RunConfig);  // some models cannot be read without their weights
  if (kCampaign)
    for (std::string& seed : seeds) seed = WithFewLayers(seed);
  return seeds;
}

void RunQuantization(std::string_view input) {
  const QuantizationConfig config =
      QuantizationConfig::Read(ParseStrictJson(input, "config.json"), "config.json");
  for (const char* module : {"model.layers.0.self_attn.q_proj", "model.layers.11.mlp.down_proj",
                             "model.layers.3.mlp.experts.17.up_proj", "lm_head", ""}) {
    const WeightScheme* const scheme = config.SchemeOf(module);
    if (scheme == nullptr) continue;
    FUZZ_CHECK(scheme >= config.schemes().data() &&
               scheme < config.schemes().data() + config.schemes().size());
    FUZZ_CHECK(!config.plain());
  }
}

// Returns a configuration whose patterns cover the grammar of regular expressions (ECMA-262,
// 15.10.1).
std::string SeedOfPatterns() {
  static constexpr const char* kPatterns[] = {"m.*",
                                              "(a|m)odel",
                                              "(?:m|n)o+",
                                              "(?=model)m",
                                              "(?!x)m",
                                              "(?=m(?!x))m",
                                              "^model",
                                              ".*proj$",
                                              "\\bmodel\\b",
                                              "m\\Bo",
                                              "\\w+",
                                              "\\W*m",
                                              "\\d*m",
                                              "\\D+",
                                              "\\s*m",
                                              "\\S+",
                                              "[a-z]+",
                                              "[^a-z]*m",
                                              "[\\d\\w]+",
                                              "[^\\d\\s\\D.]*",
                                              "[\\W\\S]",
                                              "[a-]*m",
                                              "[-m]o",
                                              "[m\\-x]o",
                                              "[\\]m]",
                                              "[\\\\m]",
                                              "[.]*",
                                              "[[.m.]]",
                                              "[[=m=]]",
                                              "[[.hyphen.]m]",
                                              "[m[.a.]-z]",
                                              "[^]",
                                              "m*?o*?",
                                              "m+?",
                                              "m??",
                                              "(m*)*",
                                              "(m|mo)*?d",
                                              "((m)o)+?",
                                              "()",
                                              "(|m)",
                                              "m||o",
                                              "a|b|model.*",
                                              ".+?j$",
                                              "(.*)\\.(.*)proj",
                                              "\\$?",
                                              "\\[*",
                                              "\\(*",
                                              "\\/*",
                                              "\\-*",
                                              "[\\b]*",
                                              "(x?)+m",
                                              "(?:)",
                                              "(?:(?:m)|o)*",
                                              "(m)?(o)??",
                                              "(?=)",
                                              "x*$|m",
                                              "model\\.layers\\.([0-9]|1[01])\\..*"};
  Json config = {
      {"model_type", "llama"},
      {"quantization_config",
       {{"quant_method", "compressed-tensors"},
        {"format", "int-quantized"},
        {"config_groups",
         {{"a",
           {{"targets", {"Linear"}}, {"weights", {{"num_bits", 8}, {"strategy", "channel"}}}}}}}}}};
  Json ignored = Json::array();
  for (const char* pattern : kPatterns) {
    config["quantization_config"]["ignore"] = {"re:" + std::string(pattern)};
    if (!Accepted({config.dump()}, RunQuantization).empty())
      ignored.push_back("re:" + std::string(pattern));
  }
  config["quantization_config"]["ignore"] = ignored;
  return config.dump();
}

}  // namespace

std::vector<std::string> QuantizationSeeds() {
  const auto with = [](const std::string& config) {
    return R"({"model_type":"llama","quantization_config":)" + config + "}";
  };
  std::vector<std::string> seeds = {
      R"({"model_type":"llama"})",
      with(R"({"quant_method":"gptq","bits":4,"group_size":128,"desc_act":false,"sym":true,)"
           R"("checkpoint_format":"gptq"})"),
      with(R"({"quant_method":"awq","bits":4,"group_size":128,"zero_point":true,"version":"gemm",)"
           R"("modules_to_not_convert":["lm_head"]})"),
      with(R"({"quant_method":"fp8","activation_scheme":"dynamic","fmt":"e4m3",)"
           R"("weight_block_size":[128,128]})"),
      with(R"({"quant_method":"mxfp4","modules_to_not_convert":["model.layers.*.self_attn"]})"),
      with(
          R"({"quant_method":"compressed-tensors","format":"pack-quantized","ignore":["lm_head"],)"
          R"("config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,"type":"int",)"
          R"("symmetric":true,"strategy":"group","group_size":128,"dynamic":false}}}})"),
      with(
          R"({"quant_method":"compressed-tensors","format":"mixed-precision","config_groups":{)"
          R"("a":{"targets":["Linear"],"format":"pack-quantized","weights":{"num_bits":4,)"
          R"("type":"int","symmetric":true,"strategy":"channel"}},"b":{"targets":["re:.*nothing"],)"
          R"("format":"pack-quantized","weights":{"num_bits":8,"type":"int","symmetric":true,)"
          R"("strategy":"channel"}}}})"),
      with(
          R"({"quant_method":"compressed-tensors","format":"mixed-precision","version":"0.12",)"
          R"("ignore":["re:.*lm_head","re:^model\\.(a|b)[0-9]+\\.x$"],"config_groups":{"a":{)"
          R"("targets":["Linear"],"format":"naive-quantized","weights":{"num_bits":8,"type":"float",)"
          R"("strategy":"block","block_structure":[16,48]}},"b":{"targets":["model.layers.0.mlp"],)"
          R"("format":"int-quantized","weights":{"num_bits":8,"strategy":"tensor"}},"c":{"targets":)"
          R"(["re:.*up_proj"],"format":"nvfp4-pack-quantized","weights":{"num_bits":4,"type":"float",)"
          R"("strategy":"tensor_group","group_size":16}},"d":{"targets":["re:.*down_proj"],"format":)"
          R"("mxfp4-pack-quantized","weights":{"num_bits":4,"type":"float","group_size":32,)"
          R"("actorder":"weight"}},"e":{"targets":["re:.*q_proj"],"format":"float-quantized",)"
          R"("weights":{"num_bits":8,"type":"float","strategy":"channel"}},"f":{"targets":)"
          R"(["re:.*k_proj"],"format":"dense","weights":{}}}})"),
      with(
          R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":{)"
          R"("model.layers.0.self_attn.q_proj":{"quant_algo":"FP8"},"model.layers.11.mlp.down_proj":)"
          R"({"quant_algo":"NVFP4","group_size":16},"lm_head":{"quant_algo":"W4A16_NVFP4"},)"
          R"("model.a":{"quant_algo":"FP8_PB_WO"},"model.b":{"quant_algo":)"
          R"("FP8_PER_CHANNEL_PER_TOKEN"}},"exclude_modules":["*.router","lm_head?"],)"
          R"("kv_cache_quant_algo":"FP8","producer":{"name":"modelopt","version":"0.3"}})"),
      with(R"({"quant_method":"gptq","bits":8,"group_size":-1,"desc_act":true,"sym":false,)"
           R"("checkpoint_format":"gptq_v2","pack_dtype":"torch.int32","meta":{"quantizer":)"
           R"(["gptqmodel:7.0.0"]},"dynamic":{"-:.*mlp.*":{},"+:.*layers\\.0\\..*":{"bits":3,)"
           R"("group_size":32,"sym":true,"desc_act":false}},"exllama_config":{"version":2}})"),
      with(R"({"quant_method":"fbgemm_fp8","activation_scale_ub":1200.0,)"
           R"("modules_to_not_convert":["lm_head"]})"),
      R"({"model_type":"llava","text_config":{"compression_config":{"quant_method":"awq","w_bit":4,)"
      R"("q_group_size":-1,"zero_point":true,"version":"GEMM","modules_to_fuse":[],"do_fuse":true}}})"};
  if (kCampaign) seeds.push_back(SeedOfPatterns());
  return seeds;
}

const Harness kSafetensors = {"safetensors", RunSafetensors, SafetensorsSeeds, MutateSafetensors};
const Harness kWeightIndex = {"index", RunWeightIndex, WeightIndexSeeds, MutateJson};
const Harness kConfig = {"config", RunConfig, ConfigSeeds, MutateJson};
const Harness kQuantization = {"quantization", RunQuantization, QuantizationSeeds, MutateJson};

}  // namespace oscar::fuzz
