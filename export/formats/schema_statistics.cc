// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Moments that an upstream server collected, from which rotations can be fitted. M_q is a mean over
// tokens; M_k and k_sum are sums that must be divided by `count`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_schemas.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr uint64_t kMaxExpansion = 8;   // float64 bytes per byte of the file (bfloat16: 4)
constexpr double kMaxAsymmetry = 1e-6;  // relative to the largest element

// Reads a tensor as float64, [heads, rows] or [heads, size, size]. A zero in `expected` accepts any
// size. `shape`, if not null, receives the tensor's shape.
std::vector<double> Values(const PtFile& file, const PtDict& entry, const char* key,
                           const std::string& where, std::vector<int64_t> expected,
                           std::vector<int64_t>* shape = nullptr) {
  const std::string what = fmt::format("{}: {}", where, key);
  const PtTensor& tensor = TensorField(entry, key, where);
  bool fits = tensor.shape.size() == expected.size();
  for (size_t d = 0; fits && d < expected.size(); ++d) {
    fits = tensor.shape[d] > 0 && (expected[d] == 0 || tensor.shape[d] == expected[d]);
  }
  if (!fits) {
    throw InputError(fmt::format("{} has shape [{}], expected [{}] (0 means any size)", what,
                                 fmt::join(tensor.shape, ", "), fmt::join(expected, ", ")));
  }
  std::vector<double> values = file.Doubles(tensor, what);
  CheckFinite(values, what);
  if (shape != nullptr) *shape = tensor.shape;
  return values;
}

void CheckSymmetric(const std::vector<double>& values, int64_t heads, int64_t size,
                    const std::string& what) {
  double largest = 0, asymmetry = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  for (int64_t h = 0; h < heads; ++h) {
    const double* matrix = values.data() + h * size * size;
    for (int64_t i = 1; i < size; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        asymmetry = std::max(asymmetry, std::abs(matrix[i * size + j] - matrix[j * size + i]));
      }
    }
  }
  if (!(asymmetry <= kMaxAsymmetry * largest)) {
    throw NumericalError(
        fmt::format("{} is not symmetric: entries differ by {:.3g}, the largest is {:.3g}", what,
                    asymmetry, largest));
  }
}

int64_t VersionOf(const PtFile& file, int64_t expected) {
  const std::string path = file.path().string();
  const int64_t version = IntField(*file.root().If<PtDict>(), "format_version", path);
  if (version != expected) {
    throw InputError(fmt::format("{}: format_version {}, expected {}", path, version, expected));
  }
  return version;
}

}  // namespace

bool MatchesMoments(const PtValue& root) {
  const PtDict* layer = FirstLayer(root);
  return layer != nullptr && layer->Find("M_q") != nullptr;
}

RotationFile ReadMoments(const PtFile& file) {
  RotationFile out;
  out.kind = RotationKind::kMoments;
  out.path = file.path();
  out.format_version = VersionOf(file, 2);
  out.calibration = Json::object();
  for (const auto& [key, value] : file.root().If<PtDict>()->entries) {
    const std::string name = PtKeyText(key);
    if (name != "layers" && name != "format_version") out.calibration[name] = PtToJson(*value);
  }
  std::set<int64_t> ids;
  uint64_t bytes = 0;
  ForEachLayer(
      file, *DictMember(file.root(), "layers"),
      [&](int64_t id, const PtDict& entry, const std::string& where) {
        MomentLayer layer;
        layer.layer_id = id;
        layer.count = IntField(entry, "count", where);
        if (layer.count <= 0) {
          throw InputError(
              fmt::format("{}: count is {}, expected a number of tokens", where, layer.count));
        }
        const PtValue* scaling = entry.Find("q_scaling");
        const double* number = scaling ? scaling->If<double>() : nullptr;
        const bool unknown = scaling != nullptr && scaling->If<PtNone>() != nullptr;
        if (!unknown && (number == nullptr || !std::isfinite(*number))) {
          throw InputError(where + ": q_scaling should be a finite float, or None");
        }
        if (!unknown) layer.q_scaling = *number;
        std::vector<int64_t> shape;
        layer.m_q = Values(file, entry, "M_q", where, {0, 0, 0}, &shape);
        const int64_t heads = layer.num_kv_heads = shape[0];
        const int64_t dim = layer.head_dim = shape[2];
        if (shape[1] != dim) throw InputError(where + ": M_q is not square");
        layer.k_sum = Values(file, entry, "k_sum", where, {heads, dim});
        layer.m_k = Values(file, entry, "M_k", where, {heads, dim, dim});
        layer.s_v = Values(file, entry, "S_v", where, {heads, 0, 0}, &shape);
        layer.v_head_dim = shape[2];
        if (shape[1] != shape[2]) throw InputError(where + ": S_v is not square");
        CheckSymmetric(layer.m_q, heads, dim, where + ": M_q");
        CheckSymmetric(layer.m_k, heads, dim, where + ": M_k");
        CheckSymmetric(layer.s_v, heads, layer.v_head_dim, where + ": S_v");
        const PtValue* rho = entry.Find("rho");
        if (rho != nullptr && !rho->If<PtNone>()) {
          layer.rho = Values(file, entry, "rho", where, {heads, 0, 0});
        }
        bytes += 8 * (layer.m_q.size() + layer.k_sum.size() + layer.m_k.size() + layer.s_v.size() +
                      layer.rho.size());
        if (bytes > kMaxExpansion * file.archive().file_size()) {
          throw InputError(
              where + ": layers share tensors, but moments of different layers must be separate");
        }
        if (!ids.insert(id).second) throw InputError(where + ": appears twice");
        out.moments.push_back(std::move(layer));
      });
  return out;
}

}  // namespace oscar
