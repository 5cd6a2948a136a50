// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/kvtc_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "capture/files/atomic_file.h"
#include "capture/files/strict_json.h"
#include "export/artifact/artifact_format.h"
#include "export/formats/kvtc_file.h"
#include "export/formats/sglang.h"  // ShellWord
#include "export/runtimes/dump_rows.h"
#include "linalg/eigh.h"
#include "linalg/error.h"
#include "linalg/group_allocation.h"
#include "linalg/parallel_for.h"
#include "linalg/stored_float.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Tokens, evenly taken: one in eight is for the allocation of bits, which no component was fitted
// to. More than that many, or components, would take more memory than they tell.
constexpr int64_t kMostFitted = 4096, kAllocationStep = 8, kLeastFitted = 64;
constexpr int64_t kMostComponents = 2048;
constexpr double kLeastVariance = 1e-10;  // of a component, of the largest
constexpr int64_t kRatios[] = {4, 8, 16, 32};
constexpr int64_t kFactorBits = 16 + 16;  // fp16 scale and offset of a group of whole numbers

enum class Stored { kFloat32, kBFloat16, kInt8, kInt4 };
struct StoredType {
  Stored type;
  const char* name;
  int64_t bits, factor_bits;
  double low = 0, high = 0;  // of whole numbers
  std::vector<int64_t> sizes = {1, 16, 64, 256, 1024};
};
const std::vector<StoredType>& StoredTypes() {
  static const std::vector<StoredType> types = {
      {Stored::kFloat32, "float32", 32, 0},
      {Stored::kBFloat16, "bfloat16", 16, 0},
      {Stored::kInt8, "int8", 8, kFactorBits, -128, 127},
      {Stored::kInt4, "int4", 4, kFactorBits, -8, 7, {8, 16, 64, 256, 1024}}};
  return types;
}

// What is lost of one token's group, in the order of the fork's operations.
double GroupError(const StoredType& type, const double* x, int64_t size) {
  if (type.type == Stored::kFloat32) return 0;
  const auto bf16 = [](double value) { return RoundToBFloat16(static_cast<float>(value)); };
  double error = 0;
  if (type.type == Stored::kBFloat16) {
    for (int64_t i = 0; i < size; ++i) error += (x[i] - bf16(x[i])) * (x[i] - bf16(x[i]));
    return error;
  }
  float low = bf16(x[0]), high = low;
  for (int64_t i = 1; i < size; ++i) {
    low = std::min(low, bf16(x[i]));
    high = std::max(high, bf16(x[i]));
  }
  const bool flat = high == low;
  const float scale = flat ? 1 : (high - low) / static_cast<float>(type.high - type.low);
  const float offset = static_cast<float>(type.low) - low / scale;
  const float stored_scale = RoundToFloat16(scale), stored_offset = RoundToFloat16(offset);
  for (int64_t i = 0; i < size; ++i) {
    const float value = bf16(x[i]);
    const float code = std::clamp(std::nearbyint(value / scale + offset),
                                  static_cast<float>(type.low), static_cast<float>(type.high));
    const double read = flat ? value : bf16((code - stored_offset) * stored_scale);
    error += (x[i] - read) * (x[i] - read);
  }
  return error;
}

// Places of the tokens that components are fitted to, by sequence.
std::vector<std::vector<int64_t>> TokensOf(const std::vector<int64_t>& lengths,
                                           const std::string& where) {
  int64_t eligible = 0;
  for (const int64_t length : lengths)
    eligible += std::max<int64_t>(0, length - kKvtcSinks - kKvtcRecent);
  const int64_t step = (eligible + kMostFitted - 1) / kMostFitted;
  if (eligible < kLeastFitted) {
    throw InputError(fmt::format(
        "{}: {} tokens lie between the first {} and the last {} of their sequence, which KVTC "
        "keeps as they are; at least {} are needed, longer documents have them",
        where, eligible, kKvtcSinks, kKvtcRecent, kLeastFitted));
  }
  std::vector<std::vector<int64_t>> tokens;
  int64_t index = 0;
  for (const int64_t length : lengths) {
    tokens.emplace_back();
    for (int64_t t = kKvtcSinks; t < length - kKvtcRecent; ++t)
      if (index++ % step == 0) tokens.back().push_back(t);
  }
  return tokens;
}

// Rows [tokens, heads dim] of one side of one layer.
DumpRows LayerRows(const DumpReader& reader, size_t index, bool keys,
                   const std::vector<std::vector<int64_t>>& tokens) {
  const DumpLayer& layer = reader.layers()[index];
  const DumpTensor tensor = keys ? DumpTensor::kK : DumpTensor::kV;
  const int64_t dim = layer.dim(tensor), width = layer.heads(tensor) * dim;
  Eigen::Index count = 0, row = 0;
  for (const auto& of_sequence : tokens) count += std::ssize(of_sequence);
  DumpRows rows(count, width);
  int64_t first_token = 0;
  for (size_t s = 0; s < tokens.size(); ++s) {
    const int64_t length = reader.sequence_lengths()[s];
    std::vector<std::byte> bytes(static_cast<size_t>(length * width * DTypeBytes(layer.dtype)));
    reader.ReadRows(index, tensor, first_token, bytes);
    first_token += length;
    DumpRows sequence = RowsOf(layer, bytes, width);
    if (keys) {
      const RopeSpec rope = RopeOf(layer, reader.name());
      for (int64_t head = 0; head < width / dim; ++head) {
        DumpRows own = sequence.middleCols(head * dim, dim);
        TurnBack(rope, own);
        sequence.middleCols(head * dim, dim) = own;
      }
    }
    for (const int64_t token : tokens[s]) rows.row(row++) = sequence.row(token);
  }
  return rows;
}

struct Components {
  Eigen::RowVectorXd mean;
  Matrix basis;  // [p, rank], by falling variance
};

// Of rows fewer than channels, by way of their products with each other.
Components FitComponents(const DumpRows& rows, const std::string& what) {
  Components fitted{rows.colwise().mean(), {}};
  const DumpRows centred = rows.rowwise() - fitted.mean;
  const bool by_rows = centred.rows() < centred.cols();
  const Matrix products =
      by_rows ? Matrix(centred * centred.transpose()) : Matrix(centred.transpose() * centred);
  const Eigenbasis eigen = SymmetricEigenbasis(products, what);
  const Eigen::Index n = eigen.eigenvalues.size();
  Eigen::Index rank = 0;
  while (rank < std::min<Eigen::Index>(n, kMostComponents) &&
         eigen.eigenvalues[n - 1 - rank] > kLeastVariance * eigen.eigenvalues[n - 1])
    ++rank;
  const Matrix leading = eigen.eigenvectors.rightCols(rank).rowwise().reverse();
  fitted.basis = by_rows ? Matrix(centred.transpose() * leading) : leading;
  for (Eigen::Index i = 0; i < rank; ++i) fitted.basis.col(i).normalize();
  return fitted;
}

// What every group that could be would lose, over all tokens.
class GroupErrors {
 public:
  explicit GroupErrors(const DumpRows& components) {
    for (const StoredType& type : StoredTypes()) {
      for (const int64_t size : type.sizes) {
        if (size > components.cols()) continue;
        options_.push_back({size, size * type.bits + type.factor_bits});
        types_.push_back(type.name);
        errors_.emplace_back(static_cast<size_t>(components.cols() - size + 1));
        ParallelFor(std::ssize(errors_.back()), [&](int64_t begin) {
          double& sum = errors_.back()[static_cast<size_t>(begin)];
          for (Eigen::Index token = 0; token < components.rows(); ++token)
            sum += GroupError(type, &components(token, begin), size);
          if (!std::isfinite(sum)) sum = std::numeric_limits<double>::infinity();
        });
      }
    }
    const Vector energies = components.colwise().squaredNorm();
    energies_.assign(energies.begin(), energies.end());
  }

  // Of a budget in bits.
  std::vector<KvtcGroup> Schema(int64_t budget) const {
    std::vector<KvtcGroup> schema;
    const auto error = [&](int64_t begin, size_t option) {
      return errors_[option][static_cast<size_t>(begin)];
    };
    for (const size_t option : AllocateGroups(options_, energies_, error, budget))
      schema.push_back({options_[option].size, types_[option]});
    return schema;
  }

 private:
  std::vector<GroupOption> options_;
  std::vector<const char*> types_;           // of options
  std::vector<std::vector<double>> errors_;  // [options][begin]
  std::vector<double> energies_;
};

FloatTensorPtr Floats(const auto& matrix, std::vector<int64_t> shape) {
  FloatTensor tensor{std::move(shape), {}};
  for (Eigen::Index row = 0; row < matrix.rows(); ++row)
    for (Eigen::Index column = 0; column < matrix.cols(); ++column)
      tensor.values.push_back(static_cast<float>(matrix(row, column)));
  return std::make_shared<const FloatTensor>(std::move(tensor));
}

// `rows` [tokens, p] of one worker.
KvtcSide SideOf(const DumpRows& rows, const std::string& what) {
  const Eigen::Index held_out = rows.rows() / kAllocationStep, fitted = rows.rows() - held_out;
  DumpRows fit(fitted, rows.cols()), judge(held_out, rows.cols());
  for (Eigen::Index row = 0, to_fit = 0, to_judge = 0; row < rows.rows(); ++row) {
    const bool judges = row % kAllocationStep == kAllocationStep - 1;
    (judges ? judge.row(to_judge++) : fit.row(to_fit++)) = rows.row(row);
  }
  const Components components = FitComponents(fit, what);
  const GroupErrors errors((judge.rowwise() - components.mean) * components.basis);
  KvtcSide side{Floats(components.mean, {rows.cols()}),
                Floats(components.basis, {components.basis.rows(), components.basis.cols()}),
                {}};
  for (const int64_t ratio : kRatios) {
    std::vector<KvtcGroup> schema = errors.Schema(16 * rows.cols() / ratio);
    if (!schema.empty()) side.quant.emplace(std::to_string(ratio), std::move(schema));
  }
  return side;
}

void CheckLayers(const DumpReader& reader, const KvtcWorkers& workers) {
  const DumpLayer& first = reader.layers().at(0);
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("{}: {}", reader.name(), why));
  };
  for (size_t i = 0; i < reader.layers().size(); ++i) {
    const DumpLayer& layer = reader.layers()[i];
    if (layer.latent()) {
      refuse(fmt::format("layer {} has latent attention (MLA), of which KVTC's fork has no keys",
                         layer.layer_id));
    }
    if (layer.layer_id != static_cast<int>(i) || layer.num_kv_heads != first.num_kv_heads ||
        layer.head_dim != first.head_dim || layer.v_head_dim != first.v_head_dim) {
      refuse(
          fmt::format("layer {} has {} KV heads of {} and {} values, and stands where layer {} of "
                      "{} heads of {} and {} should: KVTC takes all layers of one shape",
                      layer.layer_id, layer.num_kv_heads, layer.head_dim, layer.v_head_dim, i,
                      first.num_kv_heads, first.head_dim, first.v_head_dim));
    }
  }
  if (first.num_kv_heads % workers.tp != 0 || std::ssize(reader.layers()) % workers.pp != 0) {
    refuse(fmt::format("{} KV heads and {} layers do not divide among {} by {} workers",
                       first.num_kv_heads, reader.layers().size(), workers.tp, workers.pp));
  }
}

void WriteFiles(const KvtcFile& file, const std::string& what, const fs::path& output) {
  AtomicDirectory directory(output);
  WriteKvtcFile(directory.staging() / "kvtc.pt", file);
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      fmt::format(
          "#!/bin/sh\n"
          "# KVTC of {} for the fork jfckm/sglang-kvtc, which stores pages so on the host; the\n"
          "# cache of the device stays in 16 bits, so nothing else of an artifact has a part in\n"
          "# it; {} workers. The fork reads the file's path, and a ratio for keys and for values,\n"
          "# from its own arguments:\n"
          "#   {}\n",
          ShellWord(what), file.keys.size(), ShellWord(fs::absolute(output / "kvtc.pt").string())));
  directory.Commit();
}

constexpr const char* kKvtc = "kvtc";

std::string TensorName(std::string_view side, const std::string& worker, const char* what) {
  return fmt::format("{}.{}.{}", side, worker, what);
}

}  // namespace

ImportedFiles ImportedKvtc(const PtFile& file) {
  const KvtcFile read = ReadKvtcFile(file);
  ImportedFiles out{.from = kKvtc, .files = {file.path()}};
  for (const auto& [name, side] : {std::pair("keys", &read.keys), {"values", &read.values}}) {
    for (const auto& [worker, params] : *side) {
      out.tensors.emplace(TensorName(name, worker, "mu"), params.mu);
      out.tensors.emplace(TensorName(name, worker, "basis"), params.basis);
      Json& quant = out.header[name][worker] = Json::object();
      for (const auto& [ratio, groups] : params.quant) {
        quant[ratio] = Json::array();
        for (const auto& [components, type] : groups)
          quant[ratio].push_back(Json::array({components, type}));
      }
    }
  }
  return out;
}

void WriteImportedKvtc(const Artifact& artifact, const fs::path& output) {
  const Json& header = artifact.ImportedHeader(kKvtc);
  KvtcFile file;
  for (const auto& [name, side] : {std::pair("keys", &file.keys), {"values", &file.values}}) {
    for (const auto& [worker, ratios] : JsonMember(header, name, kManifestFile).items()) {
      KvtcSide& params = (*side)[worker];
      params.mu = artifact.ImportedTensor(TensorName(name, worker, "mu"));
      params.basis = artifact.ImportedTensor(TensorName(name, worker, "basis"));
      for (const auto& [ratio, groups] : ratios.items()) {
        const std::string where = fmt::format("{}: {} of {}", kManifestFile, name, worker);
        for (const Json& group : groups) {
          if (!group.is_array() || group.size() != 2 || !group[0].is_number_integer() ||
              !group[1].is_string())
            throw InputError(where + ": expected [components, type]");
          params.quant[ratio].push_back({group[0].get<int64_t>(), group[1].get<std::string>()});
        }
        CheckKvtcGroups(params.quant[ratio], params.basis->shape.back(), where);
      }
    }
  }
  WriteFiles(file, "published components", output);
}

void WriteKvtc(const fs::path& dump, const KvtcWorkers& workers, const fs::path& output) {
  const DumpReader reader(dump);
  CheckLayers(reader, workers);
  const std::vector<std::vector<int64_t>> tokens =
      TokensOf(reader.sequence_lengths(), reader.name());
  const int64_t layers = std::ssize(reader.layers()) / workers.pp;
  KvtcFile file;
  for (const bool keys : {true, false}) {
    const DumpLayer& first = reader.layers()[0];
    const int64_t heads = first.num_kv_heads / workers.tp,
                  width = heads * (keys ? first.head_dim : first.v_head_dim);
    std::map<std::string, KvtcSide>& sides = keys ? file.keys : file.values;
    for (int64_t pp = 0; pp < workers.pp; ++pp) {
      std::vector<DumpRows> of_tp(static_cast<size_t>(workers.tp));
      for (int64_t layer = 0; layer < layers; ++layer) {
        const DumpRows rows =
            LayerRows(reader, static_cast<size_t>(pp * layers + layer), keys, tokens);
        for (int64_t tp = 0; tp < workers.tp; ++tp) {
          DumpRows& own = of_tp[static_cast<size_t>(tp)];
          if (layer == 0) own.resize(rows.rows(), layers * width);
          own.middleCols(layer * width, width) = rows.middleCols(tp * width, width);
        }
      }
      for (int64_t tp = 0; tp < workers.tp; ++tp) {
        const std::string worker = fmt::format("tp_{}_pp_{}", tp, pp);
        const std::string what =
            fmt::format("{}: {} of worker {}", reader.name(), keys ? "keys" : "values", worker);
        sides.emplace(worker, SideOf(of_tp[static_cast<size_t>(tp)], what));
      }
    }
  }
  WriteFiles(file, reader.origin().model, output);
}

}  // namespace oscar
