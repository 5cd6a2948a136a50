// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/kvpress_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "capture/dump/dump_reader.h"
#include "capture/files/atomic_file.h"
#include "capture/files/strict_json.h"
#include "export/artifact/choice_reader.h"  // StoredFloats
#include "export/formats/rotation_checks.h"
#include "export/formats/sglang.h"  // ShellWord
#include "export/runtimes/dump_rows.h"
#include "linalg/error.h"
#include "linalg/matrix.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Of one layer, sums over tokens in their order.
struct QuerySums {
  int64_t tokens = 0;
  std::vector<Vector> sum;      // of heads
  std::vector<Matrix> product;  // of heads, q^T q
};

// `read(first_token, bytes)` of whole tokens.
template <typename Read>
QuerySums SumsOf(const DumpLayer& layer, const std::vector<int64_t>& lengths,
                 const std::string& where, const Read& read) {
  const RopeSpec rope = RopeOf(layer, where);
  const int64_t heads = layer.num_q_heads, d = layer.head_dim, width = DTypeBytes(layer.dtype);
  QuerySums sums{.tokens = 0,
                 .sum = std::vector<Vector>(static_cast<size_t>(heads), Vector::Zero(d)),
                 .product = std::vector<Matrix>(static_cast<size_t>(heads), Matrix::Zero(d, d))};
  int64_t first_token = 0;
  for (const int64_t tokens : lengths) {
    std::vector<std::byte> bytes(static_cast<size_t>(tokens * heads * d * width));
    read(first_token, std::span(bytes));
    first_token += tokens;
    const int64_t kept = tokens - std::min(tokens, kKvpressSinks);
    sums.tokens += kept;
    const DumpRows all = RowsOf(layer, bytes, heads * d);
    for (int64_t head = 0; head < heads; ++head) {
      DumpRows rows = all.middleCols(head * d, d);
      TurnBack(rope, rows);
      const auto counted = rows.bottomRows(kept);
      sums.sum[static_cast<size_t>(head)] += counted.colwise().sum().transpose();
      sums.product[static_cast<size_t>(head)] += counted.transpose() * counted;
    }
  }
  return sums;
}

void AddStats(const QuerySums& sums, std::vector<float>& mean, std::vector<float>& covariance) {
  const auto count = static_cast<double>(sums.tokens);
  for (size_t head = 0; head < sums.sum.size(); ++head) {
    const Vector mu = sums.sum[head] / count;
    const Matrix cov = (sums.product[head] - count * mu * mu.transpose()) / (count - 1);
    for (const double value : mu) mean.push_back(static_cast<float>(value));
    for (Eigen::Index i = 0; i < cov.size(); ++i)  // symmetric
      covariance.push_back(static_cast<float>(cov.data()[i]));
  }
}

constexpr const char* kKvpress = "kvpress";
constexpr const char *kMean = "query_mean", *kCovariance = "query_cov";
constexpr const char *kStatsFile = "model.safetensors", *kStatsConfig = "config.json";

// `config` as the class writes it.
void WriteFiles(const FloatTensor& mean, const FloatTensor& covariance, const Json& config,
                const fs::path& output) {
  AtomicDirectory directory(output);
  SafetensorsWriter file(
      directory.staging() / kStatsFile,
      {{kCovariance, DType::kF32, covariance.shape}, {kMean, DType::kF32, mean.shape}},
      {{"format", "pt"}});
  file.Write(kCovariance, std::as_bytes(std::span(covariance.values)));
  file.Write(kMean, std::as_bytes(std::span(mean.values)));
  file.Commit();
  WriteFileAtomically(directory.staging() / kStatsConfig, CanonicalJson(config));
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      fmt::format("# kvpress, with the queries of {}: it drops keys, so nothing else of an\n"
                  "# artifact has a part in it.\n"
                  "from kvpress import ExpectedAttentionStatsPress\n"
                  "press = ExpectedAttentionStatsPress(compression_ratio=0.5, "
                  "stats_folder=\"{}\")\n",
                  ShellWord(config.value("model_name", "unknown")), fs::absolute(output).string()));
  directory.Commit();
}

// As the class makes its two tensors from its configuration.
void CheckShapes(const FloatTensor& mean, const FloatTensor& covariance, const Json& config,
                 const std::string& where) {
  const auto size = [&](const char* name) { return JsonInt(config, name, where); };
  std::vector<int64_t> expected = {size("num_layers"), size("num_heads"), size("head_dim")};
  const bool fits = mean.shape == expected && !mean.values.empty();
  expected.push_back(expected.back());
  if (!fits || covariance.shape != expected) {
    throw InputError(fmt::format("{}: {} is [{}] and {} [{}], expected [{}] of the last by {}",
                                 where, kMean, fmt::join(mean.shape, ", "), kCovariance,
                                 fmt::join(covariance.shape, ", "), fmt::join(expected, ", "),
                                 kStatsConfig));
  }
  CheckFinite(mean, fmt::format("{}: {}", where, kMean));
  CheckFinite(covariance, fmt::format("{}: {}", where, kCovariance));
}

}  // namespace

void WriteKvpressStats(const fs::path& dump, const fs::path& output) {
  const DumpReader reader(dump);
  const std::string where = dump.string();
  std::map<int, QuerySums> layers;
  const DumpLayer& first = reader.layers().at(0);
  for (size_t i = 0; i < reader.layers().size(); ++i) {
    const DumpLayer& layer = reader.layers()[i];
    if (layer.latent() || layer.num_q_heads != first.num_q_heads ||
        layer.head_dim != first.head_dim) {
      throw InputError(fmt::format(
          "{}: layer {} has {}, and kvpress has one tensor of all layers' heads", where,
          layer.layer_id,
          layer.latent()
              ? "latent attention (MLA)"
              : fmt::format("{} query heads of {}, layer {} {} of {}", layer.num_q_heads,
                            layer.head_dim, first.layer_id, first.num_q_heads, first.head_dim)));
    }
    layers[layer.layer_id] = SumsOf(layer, reader.sequence_lengths(), where,
                                    [&](int64_t token, std::span<std::byte> out) {
                                      reader.ReadRows(i, DumpTensor::kQ, token, out);
                                    });
    for (size_t r = 0; r < layer.readers.size(); ++r) {
      layers[layer.readers[r].layer_id] =
          SumsOf(layer.Reader(layer.readers[r]), reader.sequence_lengths(), where,
                 [&](int64_t token, std::span<std::byte> out) {
                   reader.ReadReaderRows(i, r, DumpTensor::kQ, token, out);
                 });
    }
  }
  std::vector<float> mean, covariance;
  for (const auto& [id, sums] : layers) {
    if (static_cast<size_t>(id) * sums.sum.size() * static_cast<size_t>(first.head_dim) !=
        mean.size()) {
      throw InputError(fmt::format(
          "{}: layer {} stands behind one that is not in the dump, and kvpress counts all layers",
          where, id));
    }
    if (sums.tokens < 2)
      throw InputError(
          fmt::format("{}: {} tokens behind the first {} of each sequence, which is "
                      "no covariance",
                      where, sums.tokens, kKvpressSinks));
    AddStats(sums, mean, covariance);
  }
  const auto num_layers = static_cast<int64_t>(layers.size());
  const std::vector<int64_t> shape = {num_layers, first.num_q_heads, first.head_dim,
                                      first.head_dim};
  WriteFiles({{shape.begin(), shape.end() - 1}, std::move(mean)}, {shape, std::move(covariance)},
             {{"num_layers", num_layers},
              {"num_heads", first.num_q_heads},
              {"head_dim", first.head_dim},
              {"dataset_name", "oscar-dump"},
              {"model_name", reader.origin().model},
              {"num_samples", reader.sequence_lengths().size()},
              {"sample_seq_len", reader.longest_sequence()},
              {"n_sink", kKvpressSinks}},
             output);
}

std::optional<ImportedFiles> ImportedKvpressStats(const fs::path& directory) {
  const fs::path stats = directory / kStatsFile, config = directory / kStatsConfig;
  if (!fs::exists(stats) || !fs::exists(config)) return {};
  const SafetensorsFile file = SafetensorsFile::Open(stats);
  if (!file.tensors().contains(kMean) || !file.tensors().contains(kCovariance)) return {};
  const auto read = [&](const char* name) {
    const std::vector<int64_t>& shape = file.tensor(name).shape;
    return FloatTensor{shape, StoredFloats(file, name, shape)};
  };
  ImportedFiles out{.from = kKvpress, .files = {config, stats}};
  out.header = ReadJsonFile(config.string());
  const FloatTensor mean = read(kMean), covariance = read(kCovariance);
  CheckShapes(mean, covariance, out.header, directory.string());
  if (const auto name = out.header.find("model_name");
      name != out.header.end() && name->is_string())
    out.model_id = *name;
  out.tensors = {{kMean, std::make_shared<const FloatTensor>(mean)},
                 {kCovariance, std::make_shared<const FloatTensor>(covariance)}};
  return out;
}

void WriteImportedKvpressStats(const Artifact& artifact, const fs::path& output) {
  const Json& config = artifact.ImportedHeader(kKvpress);
  const FloatTensorPtr mean = artifact.ImportedTensor(kMean),
                       covariance = artifact.ImportedTensor(kCovariance);
  CheckShapes(*mean, *covariance, config, artifact.directory().string());
  WriteFiles(*mean, *covariance, config, output);
}

}  // namespace oscar
