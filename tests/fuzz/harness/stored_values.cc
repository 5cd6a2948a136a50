// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "capture/checkpoint/formats/formats.h"
#include "capture/checkpoint/safetensors_header.h"
#include "capture/checkpoint/weight_storage.h"
#include "capture/dump/dump_format.h"
#include "capture/dump/dump_reader.h"
#include "capture/dump/hdf5_library.h"
#include "tests/fuzz/harness/harnesses.h"

namespace oscar::fuzz {
namespace {

namespace df = dump_format;

constexpr int64_t kMaxValues = 4096;  // per tensor

// Returns the product of the sizes, or nothing if `shape` is invalid or larger than kMaxValues.
std::optional<int64_t> Count(const Json& shape) {
  int64_t count = 1;
  if (!shape.is_array() || shape.size() > kHdf5MaxRank + 1) return std::nullopt;
  for (const Json& size : shape) {
    if (!size.is_number_integer()) return std::nullopt;
    const auto n = size.get<int64_t>();
    if (n < 0 || n > kMaxValues || count * n > kMaxValues) return std::nullopt;
    count *= n;
  }
  return count;
}

// Input: {"quantization_config": .., "tensors": {name: [type, shape, numbers of 64 bits]}}, NUL,
// bytes that are repeated for values that are not given. Checks that all parts and slices of an
// accepted weight lie within their tensors.
void RunWeights(std::string_view input) {
  const size_t cut = std::min(input.find('\0'), input.size());
  const Json given = ParseLoosely(input.substr(0, cut));
  if (!given.is_object() || !given.contains("tensors") || !given["tensors"].is_object()) return;
  const std::string_view fill =
      cut + 1 < input.size() ? input.substr(cut + 1) : std::string_view("\0", 1);
  std::vector<SafetensorsWriter::Declaration> tensors;
  std::string data;
  for (const auto& [name, tensor] : given["tensors"].items()) {
    if (!tensor.is_array() || tensor.size() < 2 || !tensor[0].is_string()) continue;
    const auto dtype = DTypeFromName(tensor[0].get<std::string>());
    if (!dtype || !Count(tensor[1]) || tensors.size() > 16 || name == kSafetensorsMetadataKey)
      continue;
    const auto shape = tensor[1].get<std::vector<int64_t>>();
    const auto bytes = TensorBytes(*dtype, shape);
    if (!bytes || fill.empty()) continue;
    tensors.push_back({name, *dtype, shape});
    for (size_t i = 0; i < *bytes; ++i) {
      const bool given_one = tensor.size() > 2 && tensor[2].is_array() &&
                             i / 8 < tensor[2].size() && tensor[2][i / 8].is_number_integer();
      data += given_one ? static_cast<char>(tensor[2][i / 8].get<int64_t>() >> (8 * (i % 8)))
                        : fill[i % fill.size()];
    }
  }
  static const std::filesystem::path folder = [] {
    const std::filesystem::path path = Scratch() / "weights";
    std::filesystem::create_directory(path);
    return path;
  }();
  Json config = {{"model_type", "llama"}};
  if (given.contains("quantization_config"))
    config["quantization_config"] = given["quantization_config"];
  WriteAll(folder / "config.json", config.dump(-1, ' ', false, Json::error_handler_t::replace));
  WriteAll(folder / "model.safetensors", EncodeSafetensorsHeader(tensors, {}) + data);
  const Checkpoint checkpoint = Checkpoint::Open(folder);
  for (const char* name : {"m.weight", "m.experts.gate_up_proj"}) {
    if (!StoresWeight(checkpoint, name)) continue;
    const WeightStorage storage = FindWeightStorage(checkpoint, name);
    FUZZ_CHECK(!storage.parts.empty());
    for (const WeightPart& part : storage.parts) {
      const TensorInfo& info = checkpoint.info(part.name);
      FUZZ_CHECK(part.begin <= info.size && part.size <= info.size - part.begin);
    }
    if (storage.plain()) continue;
    int64_t bits = storage.scheme.bits;
    for (const int64_t size : storage.shape) {
      FUZZ_CHECK(size > 0 && size <= 8 * kMaxValues);
      bits *= size;
    }
    FUZZ_CHECK(bits <= 8 * static_cast<int64_t>(storage.Find(PartRole::kCodes)->size));
    FUZZ_CHECK(storage.scale_rows >= 0 && storage.scale_columns >= 0);
    const WeightPart* const scales = storage.Find(PartRole::kScales);
    if (scales != nullptr && storage.scale_rows > 0 && !storage.transposed) {
      const int64_t count = std::accumulate(scales->shape.begin(), scales->shape.end(), int64_t{1},
                                            std::multiplies<>());
      FUZZ_CHECK(CeilDivide(storage.stored_rows, storage.scale_rows) *
                     CeilDivide(storage.shape.back(), storage.scale_columns) <=
                 count);
    }
    CheckGroupIndex(checkpoint, storage);
    const WeightStorage last = SliceStorage(storage, storage.shape[0] - 1, 1);
    FUZZ_CHECK(last.bytes() <= storage.bytes());
    for (const WeightPart& part : last.parts)
      FUZZ_CHECK(part.begin + part.size <= checkpoint.info(part.name).size);
  }
}

std::vector<std::string> WeightsSeeds() {
  const auto seed = [](const char* config, const char* tensors) {
    return fmt::format(R"({{"quantization_config":{},"tensors":{}}})", config, tensors) +
           std::string("\0\1\0\0\0", 5);
  };
  std::vector<std::string> seeds = {
      seed("null", R"({"m.weight":["BF16",[24,64]]})"),
      seed(R"({"quant_method":"gptq","bits":4,"group_size":32,"desc_act":true})",
           R"({"m.qweight":["I32",[8,24]],"m.qzeros":["I32",[2,3]],"m.scales":["F16",[2,24]],)"
           R"("m.g_idx":["I32",[64]]})"),
      seed(R"({"quant_method":"awq","bits":4,"group_size":32})",
           R"({"m.qweight":["I32",[64,3]],"m.qzeros":["I32",[2,3]],"m.scales":["F16",[2,24]]})"),
      seed(R"({"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":)"
           R"({"a":{"targets":["Linear"],"weights":{"num_bits":4,"strategy":"group",)"
           R"("group_size":32,"symmetric":false,"actorder":"group"}}}})",
           R"({"m.weight_packed":["I32",[24,8]],"m.weight_scale":["BF16",[24,2]],)"
           R"("m.weight_zero_point":["I32",[3,2]],"m.weight_g_idx":["I32",[64]],)"
           R"("m.weight_shape":["I64",[2],[24,64]]})"),
      seed(R"({"quant_method":"fp8","weight_block_size":[16,48]})",
           R"({"m.weight":["F8_E4M3",[24,64]],"m.weight_scale_inv":["F32",[2,2]],)"
           R"("m.experts.gate_up_proj":["F8_E4M3",[2,16,48]],)"
           R"("m.experts.gate_up_proj_scale_inv":["F32",[2,1,1]]})"),
      seed(R"({"quant_method":"modelopt","quant_algo":"NVFP4"})",
           R"({"m.weight":["U8",[24,32]],"m.weight_scale":["F8_E4M3",[24,4]],)"
           R"("m.weight_scale_2":["F32",[]]})"),
      seed(R"({"quant_method":"mxfp4"})", R"({"m.experts.gate_up_proj_blocks":["U8",[2,8,2,16]],)"
                                          R"("m.experts.gate_up_proj_scales":["U8",[2,8,2]]})"),
      seed(R"({"quant_method":"gptq","bits":3,"group_size":-1,"sym":false,"checkpoint_format":)"
           R"("gptq_v2","meta":{"quantizer":["gptqmodel:7.0.0"]}})",
           R"({"m.qweight":["I32",[6,32]],"m.qzeros":["I32",[1,3]],"m.scales":["BF16",[1,32]]})"),
      seed(R"({"quant_method":"modelopt","quant_algo":"FP8"})",
           R"({"m.weight":["F8_E4M3",[24,64]],"m.weight_scale":["F32",[]],"m.input_scale":)"
           R"(["F32",[]],"m.k_scale":["F32",[]]})"),
      seed(R"({"quant_method":"fbgemm_fp8"})",
           R"({"m.weight":["F8_E4M3",[24,64]],"m.weight_scale":["F32",[24,1]]})"),
      seed(R"({"quant_method":"compressed-tensors","format":"int-quantized","config_groups":)"
           R"({"a":{"targets":["Linear"],"weights":{"num_bits":8,"strategy":"channel"}}}})",
           R"({"m.weight":["I8",[24,64]],"m.weight_scale":["BF16",[24,1]]})"),
      seed(
          R"({"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","config_groups":)"
          R"({"a":{"targets":["Linear"],"weights":{"num_bits":4,"type":"float","strategy":)"
          R"("tensor_group","group_size":16}}}})",
          R"({"m.weight_packed":["U8",[24,32]],"m.weight_scale":["F8_E4M3",[24,4]],)"
          R"("m.weight_global_scale":["F32",[1]],"m.input_global_scale":["F32",[1]]})"),
      seed(
          R"({"quant_method":"compressed-tensors","format":"mxfp4-pack-quantized","config_groups":)"
          R"({"a":{"targets":["m"],"weights":{"num_bits":4,"type":"float","group_size":32}}}})",
          R"({"m.weight_packed":["U8",[24,32]],"m.weight_scale":["U8",[24,2]]})")};
  if (!kCampaign) return seeds;
  // Adds every configuration, with tensors in several formats, if it accepts them.
  for (const std::string& known : QuantizationSeeds()) {
    const Json config = Json::parse(known);
    if (!config.contains("quantization_config")) continue;
    for (const char* tensors :
         {R"({"m.weight":["F8_E4M3",[24,64]],"m.weight_scale":["F32",[24,1]]})",
          R"({"m.weight":["I8",[24,64]],"m.weight_scale":["F32",[]]})",
          R"({"m.weight_packed":["I32",[24,8]],"m.weight_scale":["BF16",[24,1]],)"
          R"("m.weight_shape":["I64",[2],[24,64]]})"})
      seeds.push_back(seed(config["quantization_config"].dump().c_str(), tensors));
  }
  return Accepted(seeds, RunWeights);
}

hid_t StoredType(const std::string& name) {
  static const std::pair<const char*, hid_t> kTypes[] = {
      {"f8", H5T_IEEE_F64LE}, {"f4", H5T_IEEE_F32LE},   {"f2", Hdf5FileType(Hdf5Type::kFloat16)},
      {"i8", H5T_STD_I64LE},  {"i4", H5T_STD_I32LE},    {"u2", H5T_STD_U16LE},
      {"u1", H5T_STD_U8LE},   {"f4be", H5T_IEEE_F32BE}, {"u4", H5T_STD_U32LE},
      {"i1", H5T_STD_I8LE},   {"ref", H5T_STD_REF_OBJ}, {"bits", H5T_STD_B8LE}};
  for (const auto& [known, type] : kTypes)
    if (name == known) return type;
  return -1;
}

hid_t IntermediateGroups() {
  static const hid_t plist = [] {
    const hid_t made = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(made, 1);
    return made;
  }();
  return plist;
}

void AddAttribute(hid_t object, const std::string& name, const Json& value) {
  const auto write = [&](const Hdf5Handle& space, hid_t type, const void* bytes) {
    const Hdf5Handle attribute(
        H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
    if (attribute.valid() && bytes != nullptr) H5Awrite(attribute.get(), type, bytes);
  };
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    const Hdf5Handle type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.get(), text.size() + 1);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    write(Hdf5Handle(H5Screate(H5S_SCALAR)), type.get(), text.c_str());
  } else if (value.is_number_float()) {
    const auto number = value.get<double>();
    write(Hdf5Handle(H5Screate(H5S_SCALAR)), H5T_IEEE_F64LE, &number);
  } else if (value.is_number()) {
    const auto number = value.get<int64_t>();
    write(Hdf5Handle(H5Screate(H5S_SCALAR)),
          value.is_number_unsigned() && number < 0 ? H5T_STD_U64LE : H5T_STD_I64LE, &number);
  } else if (value.is_array()) {
    std::vector<int64_t> numbers;
    for (const Json& one : value)
      numbers.push_back(one.is_number_integer() ? one.get<int64_t>() : 0);
    const hsize_t count = numbers.size();
    write(Hdf5Handle(H5Screate_simple(1, &count, nullptr)), H5T_STD_I64LE, numbers.data());
  } else {
    write(Hdf5Handle(H5Screate(H5S_NULL)), H5T_STD_I8LE, nullptr);
  }
}

void AddDataset(hid_t file, const std::string& path, const Json& dataset) {
  const hid_t type =
      dataset.size() > 1 && dataset[0].is_string() ? StoredType(dataset[0].get<std::string>()) : -1;
  const auto count = dataset.size() > 1 ? Count(dataset[1]) : std::nullopt;
  if (type < 0 || !count) return;
  const auto shape = dataset[1].get<std::vector<hsize_t>>();
  const Hdf5Handle space(
      shape.empty() ? H5Screate(H5S_SCALAR)
                    : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  const Hdf5Handle made(H5Dcreate2(file, path.c_str(), type, space.get(), IntermediateGroups(),
                                   H5P_DEFAULT, H5P_DEFAULT));
  if (!made.valid() || *count == 0) return;
  std::vector<double> values(static_cast<size_t>(*count));
  if (dataset.size() > 2 && dataset[2].is_array()) {
    for (size_t i = 0; i < std::min(values.size(), dataset[2].size()); ++i)
      if (dataset[2][i].is_number()) values[i] = dataset[2][i].get<double>();
  }
  H5Dwrite(made.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
}

// Returns a file that libhdf5 writes as described. Bugs of libhdf5 are not looked for here.
std::string Hdf5Image(const Json& told) {
  const Hdf5Lock lock;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.get(), 1 << 14, false);
  const Hdf5Handle file(H5Fcreate("fuzz.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  for (const auto& [path, dataset] : told.at("datasets").items())
    if (path.size() < 200 && path.find('\0') == path.npos && dataset.is_array())
      AddDataset(file.get(), path, dataset);
  for (const auto& [path, attributes] : told.at("attributes").items()) {
    if (path.empty() || path.size() > 200 || path.find('\0') != path.npos) continue;
    Hdf5Handle object(H5Oopen(file.get(), path.c_str(), H5P_DEFAULT));
    if (!object.valid()) {
      object = Hdf5Handle(
          H5Gcreate2(file.get(), path.c_str(), IntermediateGroups(), H5P_DEFAULT, H5P_DEFAULT));
    }
    if (!object.valid() || !attributes.is_object()) continue;
    for (const auto& [name, value] : attributes.items())
      if (!name.empty() && name.find('\0') == name.npos) AddAttribute(object.get(), name, value);
  }
  H5Fflush(file.get(), H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(file.get(), nullptr, 0);
  std::string image(static_cast<size_t>(std::max<ssize_t>(size, 0)), '\0');
  H5Fget_file_image(file.get(), image.data(), image.size());
  return image;
}

// Input: {"datasets": {path: [type, shape, values]}, "attributes": {path: {name: value}}}. Checks
// that an accepted dump has a readable row for each token in every tensor.
void RunDump(std::string_view input) {
  const Json told = ParseLoosely(input);
  if (!told.is_object()) return;
  for (const char* part : {"datasets", "attributes"})
    if (!told.contains(part) || !told[part].is_object()) return;
  static const std::filesystem::path path = Scratch() / "dump.h5";
  WriteAll(path, Hdf5Image(told));
  const DumpReader dump(path);
  int64_t tokens = 0;
  for (const int64_t length : dump.sequence_lengths()) tokens += length;
  FUZZ_CHECK(tokens > 0 && tokens == static_cast<int64_t>(dump.token_ids().size()));
  std::vector<std::byte> rows;
  for (size_t i = 0; i < dump.layers().size(); ++i) {
    const DumpLayer& layer = dump.layers()[i];
    const auto reserve = [&](int64_t bytes) {
      FUZZ_CHECK(bytes > 0 && bytes <= kMaxValues * 8);
      rows.resize(static_cast<size_t>(bytes));
    };
    FUZZ_CHECK(layer.num_q_heads % layer.num_kv_heads == 0 && layer.scale > 0);
    for (const DumpTensor tensor : layer.tensors()) {
      reserve(tokens * layer.row_bytes(tensor));
      dump.ReadRows(i, tensor, 0, rows);
      FUZZ_CHECK(!FirstNotFinite(layer.dtype, rows));
    }
    for (size_t reader = 0; reader < layer.readers.size(); ++reader) {
      for (const DumpTensor tensor : kReaderTensors) {
        reserve(tokens * layer.Reader(layer.readers[reader]).row_bytes(tensor));
        dump.ReadReaderRows(i, reader, tensor, 0, rows);
      }
    }
    if (!layer.latent()) continue;
    reserve(layer.kv_b_bytes());
    dump.ReadKvB(i, rows);
  }
}

Json DumpOf(const DumpLayer& layer, const std::string& type) {
  const std::string group = df::LayerPath(layer.layer_id);
  Json datasets = {{"/input_ids", {"i4", {3}, {5, 6, 7}}},
                   {"/sequence_offsets", {"i8", {3}, {0, 2, 3}}}},
       attributes = {{"/",
                      {{df::kFormatAttribute, df::kFormat},
                       {df::kVersionAttribute, df::kVersion},
                       {df::kNumLayers, 1},
                       {df::kModel, "m"},
                       {df::kModelDigest, "a"},
                       {df::kTokenizerDigest, "b"},
                       {df::kDataDigest, "c"},
                       {df::kToolVersion, "v"}}},
                     {group,
                      {{df::kKind, layer.latent() ? df::kKindMla : df::kKindGqa},
                       {df::kNumQHeads, layer.num_q_heads},
                       {df::kNumKvHeads, layer.num_kv_heads},
                       {df::kHeadDim, layer.head_dim},
                       {df::kVHeadDim, layer.v_head_dim},
                       {df::kScale, layer.scale},
                       {df::kWindow, 0},
                       {df::kSoftcap, 0.0},
                       {df::kRope, "{}"},
                       {df::kQkNorm, 1},
                       {df::kNotFoldable, ""}}}};
  const auto add = [&](const std::string& path, const std::vector<int64_t>& shape) {
    datasets[path] = {type, shape, {1, 2, 3}};
    if (type == "u2") attributes[path][std::string(df::kDtype)] = df::kDtypeBf16;
  };
  for (const DumpTensor tensor : layer.tensors())
    add(df::LayerPath(layer.layer_id, DumpTensorName(tensor)), layer.shape(tensor, 3));
  for (const CacheReader& reader : layer.readers) {
    for (const DumpTensor tensor : kReaderTensors) {
      add(fmt::format("{}/{}", df::ReaderPath(layer.layer_id, reader.layer_id),
                      DumpTensorName(tensor)),
          layer.Reader(reader).shape(tensor, 3));
    }
  }
  if (layer.latent()) {
    attributes[group][std::string(df::kLatentRank)] = layer.latent_rank;
    attributes[group][std::string(df::kRopeDim)] = layer.rope_dim;
    add(df::LayerPath(layer.layer_id, df::kKvB), layer.kv_b_shape());
  }
  return {{"datasets", datasets}, {"attributes", attributes}};
}

std::vector<std::string> DumpSeeds() {
  DumpLayer layer;
  layer.layer_id = 3;
  layer.num_q_heads = 2;
  layer.num_kv_heads = 1;
  layer.head_dim = 3;
  layer.v_head_dim = 2;
  layer.scale = 0.25;
  layer.readers = {{5, 2}};
  const auto with_scores = [](Json dump, int id) {
    const auto add = [&](const char* name, const Json& dataset) {
      dump["datasets"][df::LayerPath(id, name)] = dataset;
    };
    add("lse", {"f4", {3, 2}});
    add("score_rows", {"i8", {2}, {0, 2}});
    add("scores", {"f4", {2, 2, 2}});
    add("sinks", {"f4", {2}});
    dump["datasets"]["/logits"] = {"f4", {3, 5}};
    return dump;
  };
  const Json scored = with_scores(DumpOf(layer, "f4"), 3);
  layer.layer_id = 7;
  Json two = scored;
  two.merge_patch(with_scores(DumpOf(layer, "f4"), 7));
  two["attributes"]["/"][df::kNumLayers] = 2;
  layer.layer_id = 3;
  layer.readers.clear();
  layer.dtype = DType::kBF16;
  const Json bf16 = DumpOf(layer, "u2");
  layer.num_kv_heads = 2;
  layer.latent_rank = 4;
  layer.rope_dim = 1;
  layer.dtype = DType::kF16;
  std::vector<std::string> seeds = {scored.dump(), bf16.dump(), DumpOf(layer, "f2").dump()};
  if (kCampaign) seeds.push_back(two.dump());
  return seeds;
}

}  // namespace

const Harness kWeights = {"weights", RunWeights, WeightsSeeds, MutateJsonAndText};
const Harness kDump = {"dump", RunDump, DumpSeeds, MutateJson, 8192, 2};

}  // namespace oscar::fuzz
