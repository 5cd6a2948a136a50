// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/artifact_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "capture/files/digest_json.h"
#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/choice_reader.h"
#include "export/artifact/layer_record.h"
#include "linalg/base/error.h"
#include "linalg/rotation.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

void CheckOrthogonal(const StoredSide& side, const std::string& what) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  for (int64_t i = 0; i < side.num_rotations; ++i) {
    const Eigen::Map<const RowMajor> r(side.rotation.data() + i * side.dim * side.dim, side.dim,
                                       side.dim);
    const double residual = OrthogonalityResidual(r);
    if (!(residual <= kMaxFloat32Orthogonality)) {
      throw NumericalError(fmt::format(
          "{}, rotation {}: max|RᵀR - I| is {:.3g}, expected at most {:.0e}: not a rotation", what,
          i, residual, kMaxFloat32Orthogonality));
    }
  }
}

StoredSide ReadSide(const SafetensorsFile& file, int layer_id, char name, bool shared,
                    int64_t num_rotations, int64_t dim) {
  StoredSide side;
  const auto tensor = [&](const char* what) {
    return RotationTensorName(layer_id, name, shared, what);
  };
  if (shared && file.tensors().find(tensor("rotation")) == file.tensors().end()) return side;
  side.num_rotations = num_rotations;
  side.dim = dim;
  side.rotation = StoredDoubles(file, tensor("rotation"), {num_rotations, dim, dim});
  side.eigenvalues = StoredFloats(file, tensor("eigenvalues"), {num_rotations, dim});
  side.clip_ratio = StoredFloats(file, tensor("clip_ratio"), {1}).at(0);
  CheckOrthogonal(side, fmt::format("{}: {}", file.path().string(), tensor("rotation")));
  return side;
}

// Returns the data type of a choice's scales, which are fitted to the codes.
MetadataType Metadata(const Json& layer, const StoredChoice& choice) {
  constexpr const char* kKey = "fitted_scales";
  MetadataType type{};
  try {
    type = MetadataTypeFromName(JsonString(layer, kKey, kManifestFile));
  } catch (const UsageError& unknown) {  // the name comes from the file, not from the command line
    throw InputError(fmt::format("{}: {}: {}", kManifestFile, kKey, unknown.what()));
  }
  const int bits =
      std::max(std::ranges::max(choice.k_codes.bits), std::ranges::max(choice.v_codes.bits));
  if (type == MetadataType::kByte && bits > kMaxFittedBits) {
    throw InputError(fmt::format("{}: {} is byte, which needs codes of at most {} bits, found {}",
                                 kManifestFile, kKey, kMaxFittedBits, bits));
  }
  return type;
}

// Reads one number, or a list with one for each KV head.
std::vector<int> Bits(const Json& layer, const char* key, int64_t heads) {
  const auto checked = [&](int64_t bits) {
    if (bits < 1 || bits > 8)
      throw InputError(fmt::format("{}: {} is {}, expected 1 to 8", kManifestFile, key, bits));
    return static_cast<int>(bits);
  };
  const Json& stored = JsonMember(layer, key, kManifestFile);
  if (!stored.is_array()) return {checked(JsonInt(layer, key, kManifestFile))};
  if (std::ssize(stored) != heads) {
    throw InputError(fmt::format("{}: {} has {} numbers, expected one for each of {} KV heads",
                                 kManifestFile, key, stored.size(), heads));
  }
  std::vector<int> bits;
  for (const Json& of_head : stored) {
    if (!of_head.is_number_integer()) {
      throw InputError(fmt::format("{}: {} contains {}, expected whole numbers", kManifestFile, key,
                                   of_head.dump()));
    }
    bits.push_back(checked(of_head.get<int64_t>()));
  }
  return bits;
}

constexpr const char* kNeeded[] = {kRotationsFile, kMomentsFile, kReportFile, kReportPageFile,
                                   kCardFile};

}  // namespace

bool Artifact::Checks(std::string_view file) {
  return std::find(std::begin(kNeeded), std::end(kNeeded), file) != std::end(kNeeded);
}

bool Artifact::LooksLikeOne(const fs::path& path) {
  return fs::is_directory(path) && fs::exists(path / kManifestFile);
}

fs::path ArtifactFiles::path(const std::string& file) const {
  const auto found = elsewhere.find(file);
  return found == elsewhere.end() ? directory / file : found->second;
}

std::vector<std::string> ArtifactFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, path] : elsewhere) names.push_back(name);
  if (!names.empty()) return names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  return names;
}

Artifact Artifact::Open(const ArtifactFiles& files, Digests digests) {
  Artifact artifact = OpenAny(files, digests);
  if (artifact.imported()) {
    throw InputError(fmt::format(
        "{}: imported from published files, so nothing in it was measured; use oscar-export to "
        "write it for runtimes, or oscar-validate --rotation NAME=FILES to measure rotation files",
        files.directory.string()));
  }
  return artifact;
}

Artifact Artifact::OpenImported(const fs::path& directory) {
  Artifact artifact = OpenAny(directory);
  if (!artifact.imported())
    throw InputError(directory.string() + ": was written by oscar-calibrate, not imported");
  return artifact;
}

Artifact Artifact::Open(const fs::path& directory) { return Open(ArtifactFiles{directory}); }

Artifact Artifact::OpenAny(const fs::path& directory) {
  return OpenAny(ArtifactFiles{directory}, Digests::kCompare);
}

Artifact Artifact::OpenAny(const ArtifactFiles& from, Digests digests) {
  Artifact artifact;
  artifact.files_ = from;
  const std::string file = from.path(kManifestFile).string();
  if (!fs::exists(file)) {
    throw InputError(
        fmt::format("{}: contains no {}, so it is not an artifact, or it is incomplete",
                    from.directory.string(), kManifestFile));
  }
  artifact.manifest_ = ReadJsonFile(file);
  artifact.identity_ = DigestFile(file).sha256;
  const Json& schema = JsonMember(artifact.manifest_, "$schema", file);
  const std::string name = JsonString(schema, "name", file);
  const int64_t version = JsonInt(schema, "version", file);
  if (name != kArtifactSchema || version != kArtifactVersion) {
    throw InputError(fmt::format("{}: schema {} {}, expected {} {}", file, name, version,
                                 kArtifactSchema, kArtifactVersion));
  }
  (void)JsonArray(artifact.manifest_, "geometry", file);
  const Json& files = JsonMember(artifact.manifest_, "files", file);
  for (const char* needed : kNeeded) {
    // Imported artifacts have no moments and no report.
    if (artifact.imported() && needed != std::string_view(kRotationsFile) &&
        needed != std::string_view(kCardFile))
      continue;
    const Json& entry = JsonMember(files, needed, file);
    const FileDigest expected = DigestFromJson(entry, file);
    if (digests == Digests::kCompared) continue;
    const FileDigest found = DigestFile(from.path(needed));
    if (kComparesDigests && found != expected) {
      throw InputError(fmt::format(
          "{}: has {} bytes with SHA-256 {}, but the manifest says {} bytes with {}; the artifact "
          "is damaged or was changed",
          from.path(needed).string(), found.size, found.sha256, expected.size, expected.sha256));
    }
  }
  artifact.rotations_ = SafetensorsFile::Open(from.path(kRotationsFile));
  return artifact;
}

Json Artifact::report() const { return ReadJsonFile(files_.path(kReportFile).string()); }

std::vector<int> Artifact::layer_ids() const {
  std::vector<int> ids;
  for (const Json& layer : JsonMember(manifest_, "geometry", kManifestFile)) {
    ids.push_back(JsonInt32(layer, "layer_id", kManifestFile));
  }
  return ids;
}

bool Artifact::kv_heads_known() const {
  return !imported() || JsonBool(manifest_.at("imported"), "kv_heads_known", true, kManifestFile);
}

bool Artifact::has_choices() const { return manifest_.contains("auto"); }

int64_t Artifact::NumRotations(int layer_id, char side, bool shared) const {
  const auto found =
      rotations_.tensors().find(RotationTensorName(layer_id, side, shared, "rotation"));
  if (found == rotations_.tensors().end()) return 0;
  return rotations_.tensor(found->first).shape.at(0);
}

std::vector<std::string> Artifact::choice_names() const {
  if (!has_choices()) return {};
  std::vector<std::string> names = {std::string(kHeadlineChoice)};
  for (const auto& [name, choice] : JsonMember(manifest_, "choices", kManifestFile).items())
    names.push_back(name);
  return names;
}

const Json& Artifact::Choice(std::string_view name) const {
  if (!has_choices()) {
    throw InputError(fmt::format("{}: contains no automatic choice; make one with oscar-calibrate",
                                 directory().string()));
  }
  if (name == kHeadlineChoice) return JsonMember(manifest_, "auto", kManifestFile);
  return JsonMember(JsonMember(manifest_, "choices", kManifestFile), std::string(name).c_str(),
                    kManifestFile);
}

std::string Artifact::FindChoice(std::string_view runtime, bool folded) const {
  if (!has_choices()) return {};
  const Json& serving = JsonMember(manifest_, "serving", kManifestFile);
  for (const Json& row : JsonMember(serving, "runtimes", kManifestFile)) {
    if (JsonString(row, "runtime", kManifestFile) == runtime &&
        JsonBool(row, "fold_checkpoint", false, kManifestFile) == folded)
      return JsonString(row, "choice", kManifestFile);
  }
  return {};
}

std::string Artifact::ChoiceFor(std::string_view runtime, bool folded) const {
  (void)Choice(kHeadlineChoice);  // throws if there are no choices
  if (std::string name = FindChoice(runtime, folded); !name.empty()) return name;
  if (FindChoice(runtime, !folded).empty()) {
    throw InputError(fmt::format("{}: {} has no 2-bit cache for this model's attention",
                                 directory().string(), runtime));
  }
  throw InputError(
      fmt::format("{}: the choice for {} {}", directory().string(), runtime,
                  folded ? "folds nothing into the checkpoint" : "only fits a folded checkpoint"),
      folded ? Remedy::kNotFolded : Remedy::kFolded);
}

std::vector<std::pair<double, std::string>> Artifact::budgets() const {
  std::vector<std::pair<double, std::string>> budgets;
  if (!manifest_.contains("/serving/budgets"_json_pointer)) return budgets;
  for (const Json& row : JsonArray(manifest_.at("serving"), "budgets", kManifestFile)) {
    budgets.emplace_back(JsonDouble(row, "bits", kManifestFile),
                         JsonString(row, "choice", kManifestFile));
  }
  return budgets;
}

std::string Artifact::ChoiceAt(double bits) const {
  std::string there;
  for (const auto& [budget, choice] : budgets()) {
    if (budget == bits) return choice;
    there += fmt::format("{}{:g}", there.empty() ? "" : ", ", budget);
  }
  throw InputError(
      fmt::format("{}: contains no choice at {:g} bits{}; oscar-calibrate --bits {},{:g} makes a "
                  "choice at each",
                  directory().string(), bits,
                  there.empty() ? " or at any other number" : ", but choices at " + there,
                  there.empty() ? "2" : there, bits));
}

StoredChoice Artifact::ReadChoice(int layer_id, std::string_view name) const {
  const Json& chosen = Choice(name);
  const Json& geometry =
      LayerRecordOf(JsonMember(manifest_, "geometry", kManifestFile), layer_id, kManifestFile);
  const Json& layer = LayerRecordOf(JsonMember(chosen, "layers", kManifestFile), layer_id,
                                    fmt::format("{}: choice \"{}\"", kManifestFile, name));
  const int64_t heads = JsonInt(geometry, "num_kv_heads", kManifestFile);
  const int64_t d = JsonInt(geometry, "head_dim", kManifestFile),
                dv = JsonInt(geometry, "v_head_dim", kManifestFile);
  const auto stored_with = [&](const char* key) {
    return ChoiceReader(
        rotations_, layer_id,
        layer.contains(key) ? JsonString(layer, key, kManifestFile) : std::string(name), heads,
        imported());
  };
  const ChoiceReader own(rotations_, layer_id, std::string(name), heads, imported());
  const int64_t group = JsonInt(layer, "quant_group_size", kManifestFile);
  StoredChoice choice{.k = stored_with("k_of").Side('k', d),
                      .v = stored_with("v_of").Side('v', dv),
                      .k_codes = {Bits(layer, "k_bits", heads), own.Clip('k'), group},
                      .v_codes = {Bits(layer, "v_bits", heads), own.Clip('v'), group}};
  choice.k_eigenvalues = own.Eigenvalues('k', choice.k);
  choice.v_eigenvalues = own.Eigenvalues('v', choice.v);
  if (layer.contains("fitted_scales")) {
    const MetadataType metadata = Metadata(layer, choice);
    FitScales(/*of_keys=*/true, metadata, choice.k_codes);
    FitScales(/*of_keys=*/false, metadata, choice.v_codes);
  }
  for (const int64_t dim : {d, dv}) {
    if (group < 0 || (group > 0 && dim % group != 0)) {
      throw InputError(fmt::format("{}: quantization groups of {} values do not divide heads of {}",
                                   kManifestFile, group, dim));
    }
  }
  return choice;
}

int64_t Artifact::NumKvHeads(int layer_id) const {
  return JsonInt(LayerRecordOf(JsonMember(manifest_, "geometry", kManifestFile), layer_id,
                               directory().string()),
                 "num_kv_heads", kManifestFile);
}

// Returns [num_kv_heads, dim]; empty if the artifact has none.
std::vector<float> Artifact::OfLayer(int layer_id, char side, const char* what) const {
  const Json& geometry = LayerRecordOf(JsonMember(manifest_, "geometry", kManifestFile), layer_id,
                                       directory().string());
  const std::string name = RotationTensorName(layer_id, side, false, what);
  if (!rotations_.tensors().contains(name)) return {};
  return StoredFloats(rotations_, name,
                      {JsonInt(geometry, "num_kv_heads", kManifestFile),
                       JsonInt(geometry, side == 'k' ? "head_dim" : "v_head_dim", kManifestFile)});
}

std::vector<float> Artifact::KeyMean(int layer_id) const { return OfLayer(layer_id, 'k', "mean"); }

std::vector<double> Artifact::AbsMax(int layer_id, char side) const {
  const std::vector<float> values = OfLayer(layer_id, side, "abs_max");
  return {values.begin(), values.end()};
}

StoredLayer Artifact::ReadLayer(int layer_id) const {
  const Json& geometry = LayerRecordOf(JsonMember(manifest_, "geometry", kManifestFile), layer_id,
                                       directory().string());
  const int64_t heads = JsonInt(geometry, "num_kv_heads", kManifestFile);
  const int64_t d = JsonInt(geometry, "head_dim", kManifestFile),
                dv = JsonInt(geometry, "v_head_dim", kManifestFile);
  StoredLayer layer;
  layer.layer_id = layer_id;
  layer.k = ReadSide(rotations_, layer_id, 'k', false, heads, d);
  layer.v = ReadSide(rotations_, layer_id, 'v', false, heads, dv);
  layer.k_shared = ReadSide(rotations_, layer_id, 'k', true, 1, d);
  layer.v_shared = ReadSide(rotations_, layer_id, 'v', true, 1, dv);
  if (has_choices()) layer.automatic = ReadChoice(layer_id, kHeadlineChoice);
  return layer;
}

}  // namespace oscar
