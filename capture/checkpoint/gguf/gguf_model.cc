// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/gguf/gguf_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "capture/checkpoint/gguf/gguf_architectures.h"
#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostFiles = 999;  // largest split set; releases have at most a few dozen

// "model-00002-of-00003.gguf": {"model-", 2, 3}. Source: llama_split_prefix in llama.cpp.
struct SplitName {
  std::string prefix;
  uint64_t number = 0, count = 0;
};

std::optional<SplitName> ParseSplitName(const fs::path& path) {
  const std::string stem = path.stem().string();
  constexpr size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kEnding = kDigits + kOf.size() + kDigits;
  if (stem.size() <= kEnding || stem[stem.size() - kEnding - 1] != '-') return std::nullopt;
  const std::string ending = stem.substr(stem.size() - kEnding);
  if (ending.substr(kDigits, kOf.size()) != kOf) return std::nullopt;
  const auto number = [&](size_t at) -> uint64_t {
    const std::string digits = ending.substr(at, kDigits);
    return std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })
               ? std::stoul(digits)
               : 0;
  };
  SplitName name{stem.substr(0, stem.size() - kEnding), number(0), number(kDigits + kOf.size())};
  if (name.number == 0 || name.count == 0) return std::nullopt;
  return name;
}

fs::path SplitPath(const fs::path& path, const SplitName& name, uint64_t number) {
  return path.parent_path() / fmt::format("{}{:05}-of-{:05}.gguf", name.prefix, number, name.count);
}

std::vector<GgufFile> OpenFiles(const fs::path& path) {
  std::vector<GgufFile> files;
  files.push_back(GgufFile::Open(path));
  const std::string what = path.string();
  const uint64_t count = files[0].Count("split.count").value_or(1);
  const uint64_t number = files[0].Count("split.no").value_or(0);
  if (count <= 1) return files;
  const std::optional<SplitName> name = ParseSplitName(path);
  if (!name || name->count != count || name->number != number + 1 || count > kMostFiles) {
    throw InputError(fmt::format(
        "{}: this is file {} of {} of a split model, so its name must end in -{:05}-of-{:05}.gguf",
        what, number + 1, count, number + 1, count));
  }
  if (number != 0) {
    throw InputError(
        fmt::format("{}: this is file {} of {} of a split model; give the first file, {}", what,
                    number + 1, count, SplitPath(path, *name, 1).string()));
  }
  for (uint64_t i = 1; i < count; ++i) {
    const fs::path other = SplitPath(path, *name, i + 1);
    std::error_code ignored;
    if (!fs::exists(other, ignored)) {
      throw InputError(fmt::format("{}: the split model has {} files, and {} is missing", what,
                                   count, other.string()));
    }
    files.push_back(GgufFile::Open(other));
    if (files[i].Count("split.no") != i || files[i].Count("split.count") != count) {
      throw InputError(
          fmt::format("{}: its split.no and split.count do not match file {} of {}; the files "
                      "belong to different models",
                      other.string(), i + 1, count));
    }
  }
  return files;
}

}  // namespace

bool GgufWeight::plain() const {
  return parts.size() == 1 && parts[0].type->values == 1 && parts[0].heads == 0 && !transposed &&
         row_order.empty() && column_order.empty() && change == GgufChange::kNone;
}

GgufModel GgufModel::Open(const fs::path& path) { return Of(OpenFiles(path)); }

GgufModel GgufModel::Of(std::vector<GgufFile> files) {
  GgufModel model;
  model.files_ = std::move(files);
  for (size_t i = 0; i < model.files_.size(); ++i) {
    for (const GgufTensorInfo& tensor : model.files_[i].tensors) {
      if (!model.tensors_.emplace(tensor.name, std::pair(i, &tensor)).second) {
        throw InputError(fmt::format("{}: tensor {} is also in another file of the split model",
                                     model.files_[i].file.path().string(), Quoted(tensor.name)));
      }
    }
  }
  const auto said = model.header().Count("split.tensors.count");
  if (said && *said != model.tensors_.size()) {
    model.Fail(fmt::format("split.tensors.count is {}, but the files have {} tensors", *said,
                           model.tensors_.size()));
  }
  (void)FindGgufArchitecture(model);
  return model;
}

std::string GgufModel::architecture() const {
  const auto name = header().String("general.architecture");
  if (!name) Fail("general.architecture is missing, so this is not a model");
  return std::string(*name);
}

const GgufTensorInfo* GgufModel::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second.second;
}

std::vector<float> GgufModel::Floats(const GgufTensorInfo& tensor) const {
  const GgufFile& file = files_[tensors_.find(tensor.name)->second.first];
  if (tensor.type != kGgmlF32)
    Fail(fmt::format("tensor {} must be of type F32", Quoted(tensor.name)));
  const std::span<const std::byte> bytes = file.Bytes(tensor);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void GgufModel::Fail(const std::string& problem) const {
  throw InputError(fmt::format("{}: {}", header().file.path().string(), problem));
}

bool IsGgufPath(const fs::path& path) {
  std::error_code ignored;
  return path.extension() == ".gguf" && fs::is_regular_file(path, ignored);
}

fs::path FindGgufIn(const fs::path& directory) {
  std::vector<fs::path> models;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const fs::path& path = entry.path();
    if (!IsGgufPath(path) || path.filename().string().starts_with("mmproj")) continue;
    const auto split = ParseSplitName(path);
    if (!split || split->number == 1) models.push_back(path);
  }
  std::ranges::sort(models);
  if (models.size() <= 1) return models.empty() ? fs::path() : models.front();
  std::vector<std::string> names;
  for (const fs::path& path : models) names.push_back(path.filename().string());
  throw InputError(fmt::format("{}: contains several GGUF models; give one of them: {}",
                               directory.string(), fmt::join(names, ", ")));
}

}  // namespace oscar
