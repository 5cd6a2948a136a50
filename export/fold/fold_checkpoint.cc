// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/fold/fold_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "capture/checkpoint/safetensors.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/checkpoint/weight_storage.h"
#include "capture/files/atomic_file.h"
#include "export/fold/stored_weight.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using EditsByName = std::map<std::string, WeightEdit>;

EditsByName AllEdits(const ModelSpec& spec, const std::vector<LayerFold>& layers) {
  OSCAR_CHECK_EQ(spec.layers.size(), layers.size());
  EditsByName edits;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (auto& [name, edit] : WeightEdits(spec.layers[i], layers[i])) {
      if (edits.emplace(name, edit).second) continue;
      throw InputError(fmt::format(
          "{}: layer {} shares this tensor with another layer, so it cannot hold the transforms of "
          "both",
          name, spec.layers[i].layer_id));
    }
  }
  return edits;
}

// Throws InputError for a quantized tensor, which would need new codes and scales. Others are
// rounded only once.
void CheckPlain(const Checkpoint& checkpoint, const std::string& name) {
  const WeightStorage storage = FindWeightStorage(checkpoint, name);
  if (storage.plain()) return;
  throw InputError(
      fmt::format("{}: {} is stored as {}, whose codes cannot hold the folded values exactly; fold "
                  "the model that it was made from, and quantize the result",
                  checkpoint.directory().string(), name, storage.scheme.name));
}

void WriteFile(const fs::path& from, const fs::path& to, const EditsByName& edits) {
  const SafetensorsFile source = SafetensorsFile::Open(from);
  // Writes tensors in the order of the source's data, so that the source is read from front to
  // back.
  std::vector<SafetensorsWriter::Declaration> declarations;
  for (const auto& [name, info] : source.tensors())
    declarations.push_back({name, info.dtype, info.shape});
  std::ranges::sort(declarations, {}, [&](const auto& declaration) {
    return source.tensors().find(declaration.name)->second.offset;
  });
  SafetensorsWriter writer(to, declarations, source.metadata());
  for (const auto& [name, dtype, shape] : declarations) {
    const TensorView view = source.tensor(name);
    const auto edit = edits.find(name);
    if (edit == edits.end()) {
      writer.Write(name, view.data);
    } else {
      WeightMatrix weight = ReadWeight(view, name);
      edit->second(weight);
      writer.Write(name, StoredWeight(weight, dtype, name));
    }
    source.Release(name);
  }
  writer.Commit();
}

// Whether a file of the model is copied: configuration and tokenizer, but no weights, which are
// written anew. A kFoldFile of an earlier fold is copied too, and then overwritten.
bool IsSideFile(const fs::directory_entry& entry) {
  static const std::set<std::string> extensions = {".json", ".jinja", ".model", ".txt",
                                                   ".tiktoken"};
  return entry.is_regular_file() && extensions.contains(entry.path().extension().string());
}

}  // namespace

void WriteFoldedCheckpoint(const Checkpoint& checkpoint, const ModelSpec& spec,
                           const std::vector<LayerFold>& layers, const Json& record,
                           const fs::path& to, const CheckCopy& check) {
  checkpoint.RequireOwnNames();
  const EditsByName edits = AllEdits(spec, layers);
  for (const auto& [name, edit] : edits) CheckPlain(checkpoint, name);  // throws if it is missing
  AtomicDirectory directory(to);
  for (const std::string& file : checkpoint.files())
    WriteFile(checkpoint.directory() / file, directory.staging() / file, edits);
  for (const auto& entry : fs::directory_iterator(checkpoint.directory())) {
    if (IsSideFile(entry))
      fs::copy_file(entry.path(), directory.staging() / entry.path().filename());
  }
  WriteFileAtomically(directory.staging() / kFoldFile, CanonicalJson(record));
  if (check) check(directory.staging());
  directory.Commit();
}

}  // namespace oscar
