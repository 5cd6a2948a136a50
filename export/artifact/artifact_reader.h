// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens an artifact without trusting anything in it. Open checks the schema, and digest and size of
// every file that an artifact must have; ReadLayer and ReadChoice check the rotations that they
// return. zoo/check/artifact_check.h makes all checks on every file of the directory at once.
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

// A layer's automatic choice. Imported files may set `query_rotation` of values to the matrix M^-T
// that undoes their rotation.
struct StoredChoice {
  CacheSide k, v;  // num_rotations is 0 for a side that imported files lack
  AffineQuantizer k_codes, v_codes;
  // Only for imported files: [num_rotations, dim]. Otherwise StoredSide has the eigenvalues.
  std::vector<float> k_eigenvalues = {}, v_eigenvalues = {};
};

struct StoredLayer {
  int layer_id = 0;
  StoredSide k, v;                        // per KV head
  StoredSide k_shared, v_shared;          // num_rotations is 0 if the artifact has none
  std::optional<StoredChoice> automatic;  // the headline choice
};

// Whether Open must compare the files with the manifest's digests, or the caller has done so.
enum class Digests { kCompare, kCompared };

// An artifact's files: all in `directory`, or those in `elsewhere` at other paths. Then `directory`
// only names the artifact in messages.
struct ArtifactFiles {
  std::filesystem::path directory;
  std::map<std::string, std::filesystem::path> elsewhere = {};

  std::filesystem::path path(const std::string& file) const;
  std::vector<std::string> names() const;  // names of all files that exist
};

class Artifact {
 public:
  // Throws InputError naming the file (and layer, side, head), what was expected and found. Refuses
  // imported artifacts, which have no moments and no report (imported_artifact.h).
  static Artifact Open(const std::filesystem::path& directory);
  static Artifact Open(const ArtifactFiles& files, Digests digests = Digests::kCompare);
  static Artifact OpenAny(const std::filesystem::path& directory);       // calibrated or imported
  static Artifact OpenImported(const std::filesystem::path& directory);  // imported only
  // Whether Open checks this file's digest, as it does for the files that every artifact has.
  static bool Checks(std::string_view file);
  static bool LooksLikeOne(const std::filesystem::path& path);  // whether it has a manifest.json

  const Json& manifest() const { return manifest_; }
  const std::string& identity() const { return identity_; }  // SHA-256 of manifest.json
  const std::filesystem::path& directory() const { return files_.directory; }
  const ArtifactFiles& files() const { return files_; }
  Json report() const;
  std::vector<int> layer_ids() const;
  bool imported() const { return manifest_.contains("imported"); }
  // Whether layers are recorded with their real heads. If not, every layer has one head that
  // represents all.
  bool kv_heads_known() const;
  bool has_choices() const;                       // made by oscar-calibrate --auto
  std::vector<std::string> choice_names() const;  // the headline's comes first
  // Returns the manifest's record of a choice; the headline's is "auto". Throws InputError if it is
  // missing.
  const Json& Choice(std::string_view name = kHeadlineChoice) const;
  // Returns the name of the choice that a runtime loads, for the original checkpoint or a folded
  // one. Throws InputError listing the runtime's choices if it has none.
  std::string ChoiceFor(std::string_view runtime, bool folded) const;
  std::string FindChoice(std::string_view runtime, bool folded) const;  // empty if it has none
  // Returns {bits, name} of the choice of consumer `any` for each budget of --bits, in the order of
  // that option. Empty if no list was given.
  std::vector<std::pair<double, std::string>> budgets() const;
  // Returns the name of the choice of `any` at that budget. Throws InputError listing the existing
  // budgets if there is none.
  std::string ChoiceAt(double bits) const;
  StoredChoice ReadChoice(int layer_id, std::string_view name) const;  // checked as in ReadLayer
  // Returns how many rotations are stored for a side ('k', 'v') of a layer: one per head, one for
  // all heads, or 0. Looks only at shapes.
  int64_t NumRotations(int layer_id, char side, bool shared) const;
  int64_t NumKvHeads(int layer_id) const;
  // Means of keys as they are cached, [num_kv_heads, head_dim]; empty if unknown.
  std::vector<float> KeyMean(int layer_id) const;
  // Returns the largest |x| of a side ('k', 'v') in calibration, [num_kv_heads, dim]; empty if
  // unknown. float64, because imported scales need not be quotients of float32 numbers.
  std::vector<double> AbsMax(int layer_id, char side) const;
  // Reads one layer. Throws NumericalError if a rotation is not orthogonal to float32 precision, or
  // if the matrices of keys and queries do not undo each other.
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
