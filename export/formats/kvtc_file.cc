// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/kvtc_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "capture/files/quote.h"
#include "export/formats/pt/pt_writer.h"
#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_schemas.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr const char* kVersion = "v3-worker-quant";
constexpr std::array<std::string_view, 4> kTypes = {"float32", "bfloat16", "int8", "int4"};
constexpr int64_t kInt4Step = 8;  // values of 4 bits are packed so

const PtDict& DictAt(const PtDict& dict, std::string_view key, const std::string& where) {
  const PtValue* value = dict.Find(key);
  const auto* found = value == nullptr ? nullptr : value->If<PtDict>();
  if (found == nullptr) throw InputError(fmt::format("{}: no dict {}", where, Quoted(key)));
  return *found;
}

// Workers may share what they have: each view becomes floats once.
class Tensors {
 public:
  explicit Tensors(const PtFile& file) : cache_(file) {}

  FloatTensorPtr At(const PtDict& dict, std::string_view key, size_t rank,
                    const std::string& where) {
    const PtValue* value = dict.Find(key);
    const auto* tensor = value == nullptr ? nullptr : value->If<PtTensor>();
    if (tensor == nullptr || tensor->shape.size() != rank || PtFile::Count(*tensor) == 0) {
      throw InputError(
          fmt::format("{}: no tensor {} of {} dimensions with values in it", where, key, rank));
    }
    const std::string what = fmt::format("{}: {}", where, key);
    FloatTensorPtr floats = cache_.Get(*tensor, what);
    if (finite_.insert(floats.get()).second) CheckFinite(*floats, what);
    return floats;
  }

 private:
  TensorCache cache_;
  std::set<const FloatTensor*> finite_;
};

std::vector<KvtcGroup> GroupsOf(const PtValue& schema, const std::string& where) {
  const auto refuse = [&] { throw InputError(where + ": expected a list of [components, type]"); };
  std::vector<KvtcGroup> groups;
  const auto* list = schema.If<PtList>();
  if (list == nullptr) refuse();
  for (const PtValue* item : list->items) {
    const auto* tuple = item->If<PtTuple>();
    const auto* pair = item->If<PtList>();
    if (tuple == nullptr && pair == nullptr) refuse();
    const std::vector<const PtValue*>& entry = tuple != nullptr ? tuple->items : pair->items;
    const auto* size = entry.size() == 2 ? entry[0]->If<int64_t>() : nullptr;
    const auto* type = entry.size() == 2 ? entry[1]->If<std::string>() : nullptr;
    if (size == nullptr || type == nullptr) refuse();
    groups.push_back({*size, *type});
  }
  return groups;
}

KvtcSide SideAt(Tensors& tensors, const PtDict& params, const std::string& where) {
  KvtcSide side{tensors.At(params, "mu", 1, where), tensors.At(params, "basis", 2, where), {}};
  const std::vector<int64_t>& shape = side.basis->shape;
  if (shape[0] != side.mu->shape[0] || shape[1] > shape[0]) {
    throw InputError(fmt::format("{}: mu has {} channels and basis is [{}, {}]", where,
                                 side.mu->shape[0], shape[0], shape[1]));
  }
  for (const auto& [ratio, schema] : DictAt(params, "quant", where).entries) {
    const std::string of_ratio = fmt::format("{}, ratio {}", where, Escaped(PtKeyText(ratio)));
    std::vector<KvtcGroup> groups = GroupsOf(*schema, of_ratio);
    CheckKvtcGroups(groups, shape[1], of_ratio);
    if (!side.quant.emplace(PtKeyText(ratio), std::move(groups)).second)
      throw InputError(of_ratio + ": given twice, as a number and as text");
  }
  return side;
}

}  // namespace

bool MatchesKvtc(const PtValue& root) {
  const auto* dict = root.If<PtDict>();
  return dict != nullptr && dict->Find("version") != nullptr && dict->Find("keys") != nullptr &&
         dict->Find("values") != nullptr;
}

void CheckKvtcGroups(const std::vector<KvtcGroup>& groups, int64_t rank, const std::string& where) {
  int64_t left = rank;
  for (const auto& [components, type] : groups) {
    if (std::ranges::find(kTypes, type) == kTypes.end())
      throw InputError(fmt::format("{}: type {}, expected {}", where, Quoted(type),
                                   "float32, bfloat16, int8 or int4"));
    if (components < 1 || components > left) {
      throw InputError(fmt::format("{}: a group of {} components, of which {} are left", where,
                                   components, left));
    }
    if (type == kTypes.back() && components % kInt4Step != 0) {
      throw InputError(fmt::format("{}: {} components in int4, which are packed by {}", where,
                                   components, kInt4Step));
    }
    left -= components;
  }
}

KvtcFile ReadKvtcFile(const PtFile& file) {
  const std::string path = file.path().string();
  const auto* root = file.root().If<PtDict>();
  const auto* version = root == nullptr || root->Find("version") == nullptr
                            ? nullptr
                            : root->Find("version")->If<std::string>();
  if (version == nullptr || *version != kVersion) {
    throw InputError(fmt::format("{}: version {} of KVTC's file, expected {}", path,
                                 version == nullptr ? "unknown" : Quoted(*version), kVersion));
  }
  KvtcFile read;
  Tensors tensors(file);
  for (const auto& [name, side] :
       {std::pair("keys", &KvtcFile::keys), {"values", &KvtcFile::values}}) {
    for (const auto& [worker, params] : DictAt(*root, name, path).entries) {
      const std::string where = fmt::format("{}: {} of {}", path, name, Escaped(PtKeyText(worker)));
      const auto* dict = params->If<PtDict>();
      if (dict == nullptr) throw InputError(where + ": expected a dict");
      if (!(read.*side).emplace(PtKeyText(worker), SideAt(tensors, *dict, where)).second)
        throw InputError(where + ": given twice, as a number and as text");
    }
    if ((read.*side).empty()) throw InputError(fmt::format("{}: {} of no worker", path, name));
  }
  return read;
}

void WriteKvtcFile(const std::filesystem::path& path, const KvtcFile& file) {
  PtOutDict root = {{"version", kVersion}};
  for (const auto& [name, side] : {std::pair("keys", &file.keys), {"values", &file.values}}) {
    PtOutDict workers;
    for (const auto& [worker, params] : *side) {
      PtOutDict quant;
      for (const auto& [ratio, groups] : params.quant) {
        PtOutList schema;
        for (const auto& [components, type] : groups)
          schema.emplace_back(PtOutList{components, type});
        quant.emplace_back(ratio, std::move(schema));
      }
      workers.emplace_back(
          worker,
          PtOutDict{{"mu", params.mu}, {"basis", params.basis}, {"quant", std::move(quant)}});
    }
    root.emplace_back(name, std::move(workers));
  }
  WritePt(path, root, "kvtc");
}

}  // namespace oscar
