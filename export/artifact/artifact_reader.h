// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens an artifact, whose files are untrusted. Open checks the schema and every required file's
// digest and size. ReadLayer and ReadChoice check the rotations that they return.
// zoo/check/artifact_check.h runs all checks on every file of the directory at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calib/choose/choice.h"  // CacheSide
#include "calib/consumers.h"      // kHeadlineChoice
#include "capture/checkpoint/safetensors.h"
#include "capture/files/strict_json.h"
#include "export/formats/pt/pt_file.h"  // FloatTensor

namespace oscar {

// One side of a layer as stored, with rotations per head or shared.
struct StoredSide : CacheSide {    // values are float32 numbers
  std::vector<float> eigenvalues;  // [num_rotations, dim]
  float clip_ratio = 0;
};

// A layer's automatic choice: its rotations, bits and clip ratios. In imported files,
// v.query_rotation may hold M^-T, which undoes the values' rotation M.
struct StoredChoice {
  CacheSide k, v;  // num_rotations is 0 for a side that an imported file lacks
  AffineQuantizer k_codes, v_codes;
  // [num_rotations, dim], only from imported files. Other artifacts store them in StoredSide.
  std::vector<float> k_eigenvalues = {}, v_eigenvalues = {};
};

struct StoredLayer {
  int layer_id = 0;
  StoredSide k, v;                        // per KV head
  StoredSide k_shared, v_shared;          // num_rotations is 0 if the artifact has none
  std::optional<StoredChoice> automatic;  // the headline choice
};

// Whether Open compares the files with the manifest's digests, or the caller has already done so.
enum class Digests { kCompare, kCompared };

// An artifact's files. All are in `directory` unless `elsewhere` has their paths; then `directory`
// only names the artifact in messages.
struct ArtifactFiles {
  std::filesystem::path directory;
  std::map<std::string, std::filesystem::path> elsewhere = {};

  std::filesystem::path path(const std::string& file) const;
  std::vector<std::string> names() const;  // names of all files that exist
};

class Artifact {
 public:
  // Throws InputError that names the file (and layer, side and head), the expected and the found
  // value. Refuses imported artifacts, which have no moments and no report (imported_artifact.h).
  static Artifact Open(const std::filesystem::path& directory);
  static Artifact Open(const ArtifactFiles& files, Digests digests = Digests::kCompare);
  static Artifact OpenAny(const std::filesystem::path& directory);       // calibrated or imported
  static Artifact OpenImported(const std::filesystem::path& directory);  // imported only
  // Whether Open checks the digest of this file. It does so for all files that an artifact must
  // have.
  static bool Checks(std::string_view file);
  static bool LooksLikeOne(const std::filesystem::path& path);  // whether it has a manifest.json

  const Json& manifest() const { return manifest_; }
  const std::string& identity() const { return identity_; }  // SHA-256 of manifest.json
  const std::filesystem::path& directory() const { return files_.directory; }
  const ArtifactFiles& files() const { return files_; }
  Json report() const;
  std::vector<int> layer_ids() const;
  bool imported() const { return manifest_.contains("imported"); }
  // Whether the real numbers of KV heads are known. If not, each layer is recorded with one head,
  // which represents all of its heads.
  bool kv_heads_known() const;
  bool has_choices() const;                       // made by oscar-calibrate --auto, or imported
  std::vector<std::string> choice_names() const;  // the headline's comes first
  // Returns the manifest's record of a choice. Throws InputError if it is missing. The headline
  // choice, the one that is validated, is called "auto".
  const Json& Choice(std::string_view name = kHeadlineChoice) const;
  // Returns the name of the choice that a runtime loads, for the original checkpoint or for a
  // folded one. Throws InputError if there is none; the message says whether the runtime has a
  // choice for the other checkpoint.
  std::string ChoiceFor(std::string_view runtime, bool folded) const;
  std::string FindChoice(std::string_view runtime, bool folded) const;  // empty if it has none
  // Returns the choices made for the runtime `any` at the bit budgets of --bits, as {bits, name} in
  // the order of that option. Empty if --bits was not a list.
  std::vector<std::pair<double, std::string>> budgets() const;
  // Returns the name of the choice of `any` for a budget of `bits`. Throws InputError that lists
  // the existing budgets if there is none.
  std::string ChoiceAt(double bits) const;
  StoredChoice ReadChoice(int layer_id, std::string_view name) const;  // checked as in ReadLayer
  // Returns how many rotations a layer's side ('k' or 'v') stores: one per head, one for all heads,
  // or 0. Reads only shapes.
  int64_t NumRotations(int layer_id, char side, bool shared) const;
  int64_t NumKvHeads(int layer_id) const;
  // Returns the means of keys as cached, [num_kv_heads, head_dim]; empty if unknown.
  std::vector<float> KeyMean(int layer_id) const;
  // Returns the largest |x| of a side ('k', 'v') in calibration, [num_kv_heads, dim]; empty if
  // unknown.
  std::vector<double> AbsMax(int layer_id, char side) const;
  // Reads one layer. Throws NumericalError if a rotation is not orthogonal to float32 precision, or
  // if a query matrix is not the inverse transpose of its key matrix.
  StoredLayer ReadLayer(int layer_id) const;

 private:
  static Artifact OpenAny(const ArtifactFiles& files, Digests digests);
  std::vector<float> OfLayer(int layer_id, char side, const char* name) const;

  ArtifactFiles files_;
  std::string identity_;
  Json manifest_;
  SafetensorsFile rotations_;
};

}  // namespace oscar
