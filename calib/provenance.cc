// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See provenance.h.
#include "calib/provenance.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "capture/files/digest_json.h"
#include "capture/files/mapped_file.h"
#include "capture/model/device.h"
#include "linalg/hadamard.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

Json FileJson(const fs::path& path) { return DigestToJson(DigestFile(path)); }

}  // namespace

Json DescribeModel(const ModelLocation& location, const ModelSpec& spec,
                   const Checkpoint& checkpoint) {
  Json model = {{"id", location.id},
                {"revision", location.revision},
                {"model_type", spec.model_type},
                {"num_layers", spec.layers.size()},
                {"rope", spec.rope_description},
                {"stored_dtype", DTypeName(StoredDType(spec, checkpoint))},
                {"config", FileJson(location.directory / "config.json")},
                {"weights", Json::object()}};
  for (const auto& [key, name] : {std::pair("tokenizer", "tokenizer.json"),
                                  std::pair("tokenizer_config", "tokenizer_config.json")}) {
    if (const fs::path file = location.directory / name; fs::exists(file))
      model[key] = FileJson(file);
  }
  for (const std::string& file : checkpoint.files())
    model["weights"][file] = FileJson(checkpoint.directory() / file);
  return model;
}

Json SampleWeights(const Checkpoint& checkpoint) {
  constexpr size_t kPage = 4096, kPages = 256, kHead = size_t{1} << 20;
  Json samples = Json::object();
  for (const std::string& name : checkpoint.files()) {
    const MappedFile file = MappedFile::Open(checkpoint.directory() / name);
    const auto bytes = file.bytes();
    Sha256 digest;
    digest.Add(bytes.first(std::min(bytes.size(), kHead)));
    const size_t stride = std::max(kPage, bytes.size() / kPages);
    for (size_t offset = 0; offset < bytes.size(); offset += stride) {
      digest.Add(bytes.subspan(offset, std::min(kPage, bytes.size() - offset)));
    }
    file.Release(0, bytes.size());
    samples[name] = {{"size", bytes.size()}, {"sample_sha256", digest.FinishHex()}};
  }
  return samples;
}

Json DescribeData(const DataSet& data) {
  const DataCounts& c = data.counts;
  Json json = {{"name", data.name},
               {"digest", data.digest},
               {"source_digests", data.source_digests},
               {"documents",
                {{"sent", c.documents_sent},
                 {"used", c.documents_used},
                 {"truncated", c.documents_truncated},
                 {"dropped", c.documents_dropped}}},
               {"tokens",
                {{"sent", c.tokens_sent},
                 {"used", c.tokens_used},
                 {"truncated", c.tokens_truncated},
                 {"dropped", c.tokens_dropped}}}};
  if (!data.chat_format.empty()) json["chat_format"] = data.chat_format;
  int64_t longest = 0;
  for (const Document& document : data.documents)
    longest = std::max(longest, static_cast<int64_t>(document.ids.size()));
  json["longest_document_tokens"] = longest;
  return json;
}

Json DescribeOptions(const CalibrationOptions& options, const HeldOutSplit& split,
                     const ModelSpec& spec) {
  Json hadamard = Json::object();
  for (const LayerSpec& layer : spec.layers) {
    for (int64_t dim : {layer.attention.head_dim, layer.attention.v_head_dim}) {
      hadamard[std::to_string(dim)] = HadamardBlockSize(dim);
    }
  }
  return {{"value_target", ValueTargetName(options.fit.value_target)},
          {"composition", CompositionName(options.fit.composition)},
          {"source",
           "arXiv 2605.17757; keys: mean of q^T q over the query heads of each KV head; "
           "covariances are means, symmetrized, float64"},
          {"hadamard_block_of_dim", hadamard},
          {"clip",
           {{"mode", ClipModeName(options.clip.mode)},
            {"fixed_k", options.clip.fixed_k},
            {"fixed_v", options.clip.fixed_v},
            {"candidates", options.clip.candidates}}},
          {"quant_group_size", options.clip.quant_group_size},
          {"held_out",
           {{"share", options.held_out},
            {"kind", HeldOutKindName(split.kind)},
            {"tokens", split.held_out_tokens}}},
          {"min_tokens", options.min_tokens},
          {"error_rows", options.error_rows},
          {"sink_tokens", options.sink_tokens},
          {"recent_tokens", options.recent_tokens}};
}

Json DescribeMachine(at::Device device, at::ScalarType dtype) {
  return {{"libtorch", TORCH_VERSION},
          {"device", DescribeDevice(device)},
          {"compute_dtype", ComputeDTypeName(dtype)},
          {"cpu_threads", at::get_num_threads()}};
}

Json Fingerprint(const ModelLocation& location, const CalibrationInput& input,
                 const HeldOutSplit& split, const DataSet& data,
                 const std::string& program_version) {
  return {{"model",
           {{"id", location.id},
            {"revision", location.revision},
            {"config", FileJson(location.directory / "config.json")},
            {"weights", SampleWeights(input.checkpoint)}}},
          {"data", DescribeData(data)},
          {"options", DescribeOptions(input.options, split, input.spec)},
          {"machine", DescribeMachine(input.device, input.dtype)},
          {"program", program_version}};
}

}  // namespace oscar
