// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/provenance.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "capture/checkpoint/model_config.h"
#include "capture/files/digest_json.h"
#include "capture/model/run/device.h"
#include "capture/text/data/overlap.h"
#include "linalg/base/parallel_for.h"
#include "linalg/hadamard.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Number of files digested at once, each at about 2 GB/s. The calibration needs the other cores.
constexpr int kDigestThreads = 4;

// Bytes of a weight file that stay cached after they are digested, for ranks that are behind.
constexpr uint64_t kCachedBehind = uint64_t{256} << 20;

Json FileJson(const fs::path& path) { return DigestToJson(DigestFile(path)); }

struct DumpFile {
  std::string name;  // relative to the dump
  fs::path path;
};

// Returns the files of a dump: a single file, or the sorted files in its layer directories. Other
// files in a dump's directory (upstream's script writes rotations there) are not part of it.
std::vector<DumpFile> FilesOf(const fs::path& dump) {
  if (!fs::is_directory(dump)) return {{"dump", dump}};
  std::vector<DumpFile> files;
  for (const auto& layer : fs::directory_iterator(dump)) {
    if (!layer.is_directory()) continue;
    for (const auto& entry : fs::recursive_directory_iterator(layer.path())) {
      if (!entry.is_regular_file()) continue;
      files.push_back({fs::relative(entry.path(), dump).generic_string(), entry.path()});
    }
  }
  std::ranges::sort(files, {}, &DumpFile::name);
  return files;
}

// Returns how far digesting may run ahead of loading: 1 for all files, or 0. If the page cache
// cannot hold the files, they are digested after they are loaded, roughly in the order of the
// layers.
double LeadOf(const Checkpoint& checkpoint) {
  return checkpoint.total_bytes() <= AvailableHostBytes() / 2 ? 1 : 0;
}

}  // namespace

Json DescribeModel(const ModelLocation& location, const ModelSpec& spec,
                   const Checkpoint& checkpoint) {
  Json model = {{"id", location.id},
                {"revision", location.revision},
                {"model_type", spec.model_type},
                {"num_layers", AllLayers(spec).size()},
                {"rope", spec.rope_description},
                {"stored_dtype", DescribeStorage(spec, checkpoint)},
                {"config", DigestToJson(DigestModelConfig(location.directory))},
                {"weights", Json::object()}};
  for (const auto& [key, name] :
       {std::pair("tokenizer", "tokenizer.model"), std::pair("tokenizer", "tokenizer.json"),
        std::pair("tokenizer_config", "tokenizer_config.json")}) {
    if (const fs::path file = location.directory / name; fs::exists(file))
      model[key] = FileJson(file);
  }
  for (const LayerSpec& reader : spec.uncached) {  // the source's statistics include its queries
    if (const auto& source = reader.attention.shared_kv)
      model["cache_read_by"][std::to_string(*source)].push_back(reader.layer_id);
  }
  if (!spec.fields.unknown.empty()) model["unknown_config"] = spec.fields.unknown;
  checkpoint.turns()->SetLead(LeadOf(checkpoint));
  model["weights_sample"] = SampleWeights(checkpoint);
  // Pages that would be evicted before they are needed again are freed at once.
  const uint64_t cached = checkpoint.total_bytes() <= AvailableHostBytes()
                              ? std::numeric_limits<uint64_t>::max()
                              : kCachedBehind;
  const std::vector<std::string> files = checkpoint.files();
  std::vector<Json> digests(files.size());
  ParallelFor(
      std::ssize(files),
      [&](int64_t i) {
        const auto file = static_cast<size_t>(i);
        const auto wait = [&](uint64_t at) {
          checkpoint.turns()->WaitForTurn(checkpoint.Place(file, at));
        };
        digests[file] =
            DigestToJson(DigestFile(checkpoint.directory() / files[file], wait, cached));
      },
      kDigestThreads);
  for (size_t i = 0; i < files.size(); ++i) model["weights"][files[i]] = digests[i];
  return model;
}

std::string ModelDigest(const Json& model) {
  const Json files = {{"config", model.at("config")}, {"weights", model.at("weights")}};
  return Sha256Hex(CanonicalJson(files));
}

void CheckSameWeights(std::string_view who, const Json& read, std::string_view than,
                      const Json& own) {
  for (const auto& [file, digest] : own.items()) {
    const Json found = read.value(file, Json());
    if (found == digest) continue;
    throw InputError(fmt::format("{} read a different {}{}: its SHA-256 is {}, but here it is {}",
                                 who, file, than, found.dump(), digest.dump()));
  }
}

Json SampleWeights(const Checkpoint& checkpoint) {
  return SampleWeightFiles(checkpoint.directory(), checkpoint.files());
}

Json DescribeDump(const fs::path& path, const AttentionDump& dump) {
  const DumpOrigin& origin = dump.origin();
  const size_t at = origin.model.rfind('@');
  Json files = Json::object();
  uint64_t size = 0;
  for (const DumpFile& file : FilesOf(path)) {
    const FileDigest digest = DigestFile(file.path);
    files[file.name] = DigestToJson(digest);
    size += digest.size;
  }
  // A file has its own digest; a directory has the digest of its list of file digests.
  const std::string digest = fs::is_directory(path)
                                 ? Sha256Hex(CanonicalJson(files))
                                 : files.begin().value().at("sha256").get<std::string>();
  return {{"id", origin.model.empty() ? std::string("unknown (dump)") : origin.model.substr(0, at)},
          {"revision", at == origin.model.npos ? std::string() : origin.model.substr(at + 1)},
          {"num_layers", dump.layers().size()},
          {"stored_dtype", DTypeName(dump.layers().front().dtype)},
          {"dump",
           {{"format", origin.format},
            {"sha256", digest},
            {"size", size},
            {"files", files.size()},
            {"model_digest", origin.model_digest},
            {"tokenizer_digest", origin.tokenizer_digest},
            {"data_digest", origin.data_digest},
            {"tool_version", origin.tool_version},
            {"attention_output", dump.has(DumpTensor::kAttnOut) ? "recorded" : "recomputed"}}}};
}

DataSet DumpData(const AttentionDump& dump) {
  DataSet data;
  data.name = "as captured in " + fs::path(dump.name()).filename().string();
  data.digest = dump.origin().data_digest;
  const std::span<const int32_t> ids = dump.token_ids();
  size_t begin = 0;
  for (const int64_t length : dump.sequence_lengths()) {
    Document document;
    document.origin = fmt::format("{}:{}", dump.name(), data.documents.size());
    if (!ids.empty()) {
      const auto part = ids.subspan(begin, static_cast<size_t>(length));
      document.ids.assign(part.begin(), part.end());
    }
    if (const std::span<const uint8_t> counted = dump.counted(); !counted.empty()) {
      const auto part = counted.subspan(begin, static_cast<size_t>(length));
      if (std::ranges::find(part, 0) != part.end())
        document.counted.assign(part.begin(), part.end());
    }
    begin += static_cast<size_t>(length);
    data.documents.push_back(std::move(document));
  }
  return data;
}

Json DescribeDumpData(const AttentionDump& dump) {
  const std::vector<int64_t>& lengths = dump.sequence_lengths();
  const DataSet data = DumpData(dump);
  Json json = {{"name", "as captured in the dump"},
               {"digest", data.digest},
               {"documents", {{"used", lengths.size()}}},
               {"tokens", {{"used", std::accumulate(lengths.begin(), lengths.end(), int64_t{0})}}},
               {"longest_document_tokens", *std::max_element(lengths.begin(), lengths.end())}};
  if (data.masked()) json["counted_queries"] = data.counted_queries();
  if (!dump.token_ids().empty()) json["fingerprints"] = FingerprintsToJson(MakeFingerprints(data));
  return json;
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
  if (data.lost > 0) json["lost_without_token"] = data.lost;
  if (c.rows_null > 0) json["rows_null"] = c.rows_null;
  if (data.masked()) json["counted_queries"] = data.counted_queries();  // among the tokens used
  if (!data.chat_format.empty()) json["chat_format"] = data.chat_format;
  if (!data.chat_template.is_null()) json["chat_template"] = data.chat_template;
  if (!data.self_generated.is_null()) json["self_generated"] = data.self_generated;
  for (const MixClass& part : data.mix) {
    json["mix"].push_back({{"source", part.source},
                           {"weight", part.weight},
                           {"longest_tokens", part.longest},
                           {"documents", {{"sent", part.documents}, {"used", part.documents_used}}},
                           {"tokens", {{"sent", part.tokens}, {"used", part.tokens_used}}}});
  }
  if (data.separator)
    json["packed_with"] = {{"token", data.separator->token}, {"id", data.separator->id}};
  int64_t longest = 0;
  for (const Document& document : data.documents)
    longest = std::max(longest, static_cast<int64_t>(document.ids.size()));
  json["longest_document_tokens"] = longest;
  if (data.separator)
    json["packed"] = {{"separator", data.separator->token}, {"separator_id", data.separator->id}};
  json["fingerprints"] = FingerprintsToJson(MakeFingerprints(data));
  return json;
}

Json DescribeOptions(const CalibrationOptions& options, const HeldOutSplit& split,
                     const std::vector<LayerSpec>& layers) {
  Json hadamard = Json::object(), latent = Json::array();
  for (const LayerSpec& layer : layers) {
    if (layer.attention.latent) latent.push_back(layer.layer_id);
    for (int64_t dim : {layer.attention.head_dim, layer.attention.v_head_dim}) {
      hadamard[std::to_string(dim)] = HadamardBlockSize(dim);
    }
  }
  Json json = {
      {"value_target", ValueTargetName(options.fit.value_target)},
      {"composition", CompositionName(options.fit.composition)},
      {"source",
       "arXiv 2605.17757; keys: mean of q^T q over the query heads of each KV head; "
       "covariances are means, symmetrized, float64"},
      {"hadamard_block_of_dim", hadamard},
      // These layers' caches hold one latent for keys and values, so both have the same rotation.
      {"latent_layers", latent},
      {"clip",
       {{"mode", ClipModeName(options.clip.mode)},
        {"fixed_k", options.clip.fixed_k},
        {"fixed_v", options.clip.fixed_v},
        {"candidates", options.clip.candidates}}},
      {"quant_group_size", options.clip.quant_group_size},
      {"auto",
       {{"enabled", options.automatic.enabled},
        {"for", RulesOf(options.automatic.consumer).name},
        {"fold", options.automatic.fold},
        {"feedback", options.automatic.feedback},
        {"bits", options.automatic.bits},
        {"bits_of", options.automatic.head_bits ? "head" : "layer"},
        {"bits_by", options.automatic.price ? BitPriceName(*options.automatic.price) : "least"},
        {"clip_of", options.automatic.head_clip ? "head" : "layer"},
        {"context", options.automatic.context},
        {"refine", options.automatic.refine},
        {"effort", SearchEffortName(options.automatic.effort)},
        {"windows", options.automatic.windows ? "auto" : "given"}}},
      {"held_out",
       {{"share", options.held_out},
        {"kind", HeldOutKindName(split.kind)},
        {"tokens", split.held_out_tokens}}},
      {"min_tokens", options.min_tokens},
      {"error_rows", options.error_rows},
      {"sink_tokens", options.sink_tokens},
      {"recent_tokens", options.recent_tokens}};
  if (!options.automatic.budgets.empty()) json["auto"]["budgets"] = options.automatic.budgets;
  return json;
}

int CpuThreads() { return at::get_num_threads(); }

Json DescribeMachine(at::Device device, at::ScalarType dtype) {
  return {{"libtorch", TORCH_VERSION},
          {"device", device.is_cpu() ? fmt::format("cpu ({})", at::get_cpu_capability())
                                     : DescribeDevice(device)},
          {"compute_dtype", ComputeDTypeName(dtype)}};
}

Json DescribeMachine(const CalibrationInput& input) {
  Json machine = DescribeMachine(input.device, input.dtype);
  if (const ModelSource* model = input.model()) {
    machine["token_chunk"] = model->loop().options().token_chunk;
    machine["query_chunk"] = model->loop().options().query_chunk;
  }
  return machine;
}

Json FingerprintModel(const ModelLocation& location, const Checkpoint& checkpoint) {
  return {{"id", location.id},
          {"revision", location.revision},
          {"config", DigestToJson(DigestModelConfig(location.directory))},
          {"weights", SampleWeights(checkpoint)}};
}

Json FingerprintDump(const fs::path& path, const AttentionDump& dump) {
  Json files = Json::object();
  for (const DumpFile& file : FilesOf(path)) files[file.name] = SampleFile(file.path);
  return {{"model", dump.origin().model}, {"dump", files}};
}

Json DumpIdentities(const fs::path& path) {
  Json identities = Json::object();
  for (const DumpFile& file : FilesOf(path))
    identities[file.name] =
        FileIdentities(file.path.parent_path(), {file.path.filename().string()}).front();
  return identities;
}

Json Fingerprint(const Json& origin, const Json& data, const CalibrationInput& input,
                 const HeldOutSplit& split, const std::string& program_version) {
  return {{"model", origin},
          {"data", data},
          {"options", DescribeOptions(input.options, split, input.source->layers())},
          {"machine", DescribeMachine(input)},
          {"program", program_version}};
}

}  // namespace oscar
