// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reports on .pt files: a single file, a pair, or a directory of MLA layers. Layers may share
// tensors, so each view is hashed and measured only once.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "capture/files/digest.h"
#include "export/formats/inspect.h"
#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_file.h"
#include "export/formats/rotation_pair.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr const char* kOrthogonality = "max_abs_RRt_minus_I";

bool IsSquareStack(const std::vector<int64_t>& shape) {
  const size_t rank = shape.size();
  return (rank == 2 || rank == 3) && shape[rank - 1] == shape[rank - 2];
}

class PtReport {
 public:
  explicit PtReport(const PtFile& file) : file_(file) {}

  Json Make() {
    const RotationFile rotations = ReadRotationFile(file_);
    const FileDigest digest = DigestFile(file_.path());
    report_ = {{"format", "pt"},
               {"kind", RotationKindName(rotations.kind)},
               {"file", file_.path().filename().string()},
               {"bytes", digest.size},
               {"sha256", digest.sha256},
               {"container", Container()},
               {"top", Json::object()},
               {"layer_ids", Json::array()}};
    measure_ = rotations.kind != RotationKind::kMoments;
    Contents(rotations);
    report_[kOrthogonality] = measure_ ? Json(worst_) : Json(nullptr);
    report_["storages_shared_between_tensors"] = shared_;
    return std::move(report_);
  }

 private:
  Json Container() const {
    const auto& records = file_.archive().records();
    const auto is_data = [](const ZipRecord& r) { return r.name.starts_with("data/"); };
    return {{"prefix", file_.archive().prefix()},
            {"records", records.size()},
            {"data_records", std::count_if(records.begin(), records.end(), is_data)},
            {"pickle_bytes", file_.archive().record("data.pkl").size()},
            {"pickle_protocol", 2},
            {"globals", file_.globals()}};
  }

  void Contents(const RotationFile& rotations) {
    const RotationKind kind = rotations.kind;
    const auto* root = file_.root().If<PtDict>();
    if (root == nullptr) {
      report_["tensor"] = Tensor("rotation", *file_.root().If<PtTensor>());
      return;
    }
    if (kind == RotationKind::kMlaLayer) {
      report_["entry"] = Entry(*root, rotations.layers[0]);
      return;
    }
    const PtDict* layers = root;
    if (kind != RotationKind::kFlat) {
      layers = root->Find("layers")->If<PtDict>();
      for (const auto& [key, value] : root->entries) {
        if (PtKeyText(key) != "layers") report_["top"][PtKeyText(key)] = PtToJson(*value);
      }
    }
    std::set<std::string> key_types;
    report_["layers"] = Json::object();
    for (size_t i = 0; i < layers->entries.size(); ++i) {
      const auto& [key, value] = layers->entries[i];
      const RotationLayer none;
      const RotationLayer& layer = i < rotations.layers.size() ? rotations.layers[i] : none;
      const bool is_int = std::holds_alternative<int64_t>(key);
      key_types.insert(is_int ? "int" : "str");
      report_["layer_ids"].push_back(is_int ? Json(std::get<int64_t>(key)) : Json(PtKeyText(key)));
      const auto* tensor = value->If<PtTensor>();
      report_["layers"][PtKeyText(key)] = tensor ? Json{{"rotation", Tensor("rotation", *tensor)}}
                                                 : Entry(*value->If<PtDict>(), layer);
    }
    report_["layer_key_type"] = key_types;
  }

  Json Entry(const PtDict& dict, const RotationLayer& layer) {
    Json out = Json::object();
    for (const auto& [key, value] : dict.entries) {
      const auto* tensor = value->If<PtTensor>();
      const std::string name = PtKeyText(key);
      out[name] = tensor ? Tensor(name, *tensor) : PtToJson(*value);
    }
    if (layer.q_inverse_error) out["max_abs_R_qRt_minus_I"] = *layer.q_inverse_error;
    if (layer.o_inverse_error) out["max_abs_R_oRt_minus_I"] = *layer.o_inverse_error;
    return out;
  }

  // The measurements to make of a tensor, which depend on its name.
  enum class Role { kRotation, kEigenvalues, kOther };
  static Role RoleOf(std::string_view name) {
    if (name.ends_with("rotation")) return Role::kRotation;
    return name == "eigenvalues" ? Role::kEigenvalues : Role::kOther;
  }

  Json Tensor(const std::string& name, const PtTensor& tensor) {
    shared_ |= !storages_.insert(tensor.storage).second;
    const Role role = RoleOf(name);
    const std::string view =
        fmt::format("{}|{}|{}|{}|{}", static_cast<int>(role), tensor.storage, tensor.offset,
                    fmt::join(tensor.shape, ","), fmt::join(tensor.strides, ","));
    Json& out = known_[view];
    if (out.is_null()) {
      out = PtTensorJson(tensor);
      out["sha256"] = Sha256Hex(file_.RawBytes(tensor));
      if (measure_) Measure(name, role, tensor, &out);
    }
    if (name == "rotation" && out.contains(kOrthogonality))
      worst_ = std::max(worst_, out[kOrthogonality].get<double>());
    return out;
  }

  void Measure(const std::string& name, Role role, const PtTensor& tensor, Json* out) {
    if (role == Role::kRotation && IsSquareStack(tensor.shape)) {
      const std::vector<double> values = file_.Doubles(tensor, name);
      (*out)[kOrthogonality] = InverseError(StackOf(tensor.shape, name), values, values);
    } else if (role == Role::kEigenvalues && PtFile::Count(tensor) > 0) {
      const auto row = tensor.shape.empty() ? 1 : tensor.shape.back();
      MeasureEigenvalues(file_.Doubles(tensor, name), row, tensor.shape.size() > 1, out);
    }
  }

  // Sums the rows of eigenvalues. The sum is a number for [d], an array for [num_kv_heads, d].
  static void MeasureEigenvalues(const std::vector<double>& values, int64_t row, bool many_rows,
                                 Json* out) {
    Json sums = Json::array();
    bool ascending = true;
    for (auto first = values.begin(); first != values.end(); first += row) {
      sums.push_back(std::accumulate(first, first + row, 0.0));
      ascending = ascending && std::is_sorted(first, first + row);
    }
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    (*out)["sum"] = many_rows ? sums : sums[0];
    (*out)["min"] = *low;
    (*out)["max"] = *high;
    (*out)["ascending"] = ascending;
  }

  const PtFile& file_;
  Json report_;
  bool measure_ = true;
  double worst_ = 0;
  bool shared_ = false;
  std::set<std::string> storages_;
  std::map<std::string, Json> known_;  // by role and view
};

}  // namespace

Json InspectPt(const std::filesystem::path& path) {
  const PtFile file = PtFile::Open(path);
  return PtReport(file).Make();
}

bool IsPairFolder(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) && FindRotationPair(path).has_value();
}

Json InspectPairFolder(const std::filesystem::path& path) {
  const auto files = FindRotationPair(path);
  OpenRotationPair(files->first, files->second);
  return {{"format", "pair"},
          {"file", path.filename().string()},
          {"k", InspectPt(files->first)},
          {"v", InspectPt(files->second)}};
}

Json InspectMlaFolder(const std::filesystem::path& path) {
  const RotationFile folder = OpenMlaFolder(path);
  Json files = Json::array();
  for (const RotationLayer& layer : folder.layers) {
    files.push_back(InspectPt(path / fmt::format("layer_{}.pt", layer.layer_id)));
  }
  return {{"format", "mla-folder"}, {"file", path.filename().string()}, {"files", files}};
}

}  // namespace oscar
