// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/lint/lint_artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "capture/checkpoint/safetensors.h"
#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "zoo/lint/lint_pt.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int64_t kTokensPerDimension = 20;

// Returns a tensor as floats; empty if it is missing or not F32 (CheckArtifact reports that).
std::vector<float> FloatsOf(const SafetensorsFile& file, const std::string& name, size_t size) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end() || found->second.dtype != DType::kF32) return {};
  const TensorView view = file.tensor(name);
  if (view.data.size() != size * sizeof(float)) return {};
  std::vector<float> values(size);
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

struct LayerGeometry {
  int layer_id = 0;
  int64_t num_kv_heads = 0, head_dim = 0, v_head_dim = 0, tokens = 0;
};

// Parses a geometry. Throws InputError if it is malformed or its sizes are impossibly large.
std::vector<LayerGeometry> GeometryOf(const Json& manifest) {
  std::vector<LayerGeometry> layers;
  for (const Json& layer : JsonMember(manifest, "geometry", kManifestFile)) {
    const auto number = [&](const char* key) {
      const int64_t value = JsonInt(layer, key, kManifestFile);
      if (value < 0 || value > (int64_t{1} << 20))
        throw InputError(
            fmt::format("{}: geometry.{} is {}, expected 0 to 2^20", kManifestFile, key, value));
      return value;
    };
    layers.push_back({static_cast<int>(number("layer_id")), number("num_kv_heads"),
                      number("head_dim"), number("v_head_dim"),
                      JsonInt(layer, "tokens", kManifestFile)});
  }
  return layers;
}

class ArtifactLint {
 public:
  ArtifactLint(const Artifact& artifact, const fs::path& shown, LintSink* sink)
      : artifact_(artifact),
        shown_(shown),
        rotations_(SafetensorsFile::Open(artifact.files().path(kRotationsFile))),
        layers_(GeometryOf(artifact.manifest())),
        sink_(sink) {}

  void Tensors() {
    for (const LayerGeometry& layer : layers_) {
      for (const char side : {'k', 'v'}) {
        for (const bool shared : {false, true}) {
          const int64_t dim = side == 'k' ? layer.head_dim : layer.v_head_dim;
          Side(layer.layer_id, side, shared, shared ? 1 : layer.num_kv_heads, dim);
        }
      }
    }
  }

  void Layers(const LintOptions& options) {
    std::vector<LayerShape> k, v;
    std::vector<int64_t> few;
    for (const LayerGeometry& layer : layers_) {
      k.push_back({layer.layer_id, layer.num_kv_heads, layer.head_dim});
      v.push_back({layer.layer_id, layer.num_kv_heads, layer.v_head_dim});
      if (layer.tokens < kTokensPerDimension * std::max(layer.head_dim, layer.v_head_dim))
        few.push_back(layer.layer_id);
    }
    LintLayers(k, 'k', Place(), options, sink_);
    // K and V have the same layers, so V is checked only if some layer's head dimensions of K and V
    // differ.
    const bool own = std::any_of(layers_.begin(), layers_.end(), [](const LayerGeometry& layer) {
      return layer.v_head_dim != layer.head_dim;
    });
    if (options.model && own) LintLayers(v, 'v', Place(), options, sink_);
    if (!few.empty()) {
      sink_->Add("few-tokens", Place(),
                 fmt::format("only {} tokens in layer {}", FewestTokens(), ListIds(few)),
                 fmt::format("{} tokens per dimension of a head", kTokensPerDimension));
    }
  }

  // Checks whether a rotation that several heads share suits all of them. The measured KLs decide
  // if there are any. Otherwise HeadAgreement decides. It can give false alarms, because the
  // covariance over all heads may contain the leading subspaces of each.
  void HeadsAgree(const Json& report) {
    const auto [shared, per_head] = MeasuredKl(report);
    if (per_head > 0) {
      if (shared > kMaxSharedKlFactor * per_head) {
        sink_->Add(
            "heads-disagree", Place(),
            fmt::format("attention-KL {:.4g} with the shared rotations, {:.4g} per head", shared,
                        per_head),
            fmt::format(
                "at most {} times the KL of the per-head rotations; load the per-head rotations",
                kMaxSharedKlFactor));
      }
      return;
    }
    for (const char side : {'k', 'v'}) {
      const double agreement = MeanAgreement(side);
      if (agreement >= kMinHeadAgreement) continue;
      LintPlace place = Place();
      place.side = std::string(1, side) + "_shared";
      sink_->Add("heads-disagree", place,
                 fmt::format("the heads' leading directions agree by {:.2f} (0: by chance, 1: same "
                             "subspace), and no KL was measured",
                             agreement),
                 fmt::format("at least {}; measure with oscar-validate, or load the per-head "
                             "rotations",
                             kMinHeadAgreement));
    }
  }

 private:
  LintPlace Place() const { return {shown_, {}, {}, ""}; }

  std::vector<float> Values(int layer_id, char side, bool shared, const char* name,
                            int64_t size) const {
    return FloatsOf(rotations_, RotationTensorName(layer_id, side, shared, name),
                    static_cast<size_t>(size));
  }

  void Side(int layer_id, char side, bool shared, int64_t count, int64_t dim) {
    const LintPlace place{shown_, layer_id, {}, std::string(1, side) + (shared ? "_shared" : "")};
    const auto rotation = Values(layer_id, side, shared, "rotation", count * dim * dim);
    if (!rotation.empty())
      LintRotations(rotation, count, dim, kMaxFloat32Orthogonality, place, sink_);
    const auto eigenvalues = Values(layer_id, side, shared, "eigenvalues", count * dim);
    if (!eigenvalues.empty()) LintSpectrum(eigenvalues, count, dim, place, sink_);
  }

  // Returns the mean of HeadAgreement over layers; 1 if no layer has heads that share a rotation.
  double MeanAgreement(char side) const {
    double sum = 0;
    int64_t layers = 0;
    for (const LayerGeometry& layer : layers_) {
      const int64_t dim = side == 'k' ? layer.head_dim : layer.v_head_dim;
      const int64_t heads = layer.num_kv_heads;
      if (heads < 2 || Values(layer.layer_id, side, true, "rotation", dim * dim).empty()) continue;
      const auto rotations = Values(layer.layer_id, side, false, "rotation", heads * dim * dim);
      const auto eigenvalues = Values(layer.layer_id, side, false, "eigenvalues", heads * dim);
      if (rotations.empty() || eigenvalues.empty()) continue;
      sum += HeadAgreement(rotations, eigenvalues, heads, dim, FittedComposition());
      ++layers;
    }
    return layers == 0 ? 1 : sum / static_cast<double>(layers);
  }

  // Returns the KL with the shared and with the per-head rotations, on tokens held out of the
  // calibration; zeros if not measured.
  static std::pair<double, double> MeasuredKl(const Json& report) {
    const Json arms = JsonMember(report, "summary", "report").value("arms", Json::object());
    if (!arms.contains("oscar_shared") || !arms.contains("oscar_per_head")) return {0, 0};
    for (const char* key :
         {"kl_mean", "kl_mean_no_windows"}) {  // kl_mean is 0 if windows hold all tokens
      const double per_head = JsonDouble(arms.at("oscar_per_head"), key, "report");
      if (per_head > 0) return {JsonDouble(arms.at("oscar_shared"), key, "report"), per_head};
    }
    return {0, 0};
  }

  int64_t FewestTokens() const {
    int64_t fewest = layers_.front().tokens;
    for (const LayerGeometry& layer : layers_) fewest = std::min(fewest, layer.tokens);
    return fewest;
  }

  Composition FittedComposition() const {
    const Json& calibration = JsonMember(artifact_.manifest(), "calibration", kManifestFile);
    return CompositionFromName(JsonString(calibration, "composition", kManifestFile));
  }

  const Artifact& artifact_;
  fs::path shown_;
  SafetensorsFile rotations_;
  std::vector<LayerGeometry> layers_;
  LintSink* sink_;
};

void LintValidation(const ValidationCheck& validation, const LintPlace& place, LintSink* sink) {
  for (const ValidationProblem& problem : validation.problems)
    sink->Add(problem.code, place, problem.text);
}

}  // namespace

void LintArtifact(const ArtifactFiles& files, const LintOptions& options, LintSink* sink) {
  const fs::path& shown = files.directory;
  const LintPlace place{shown, {}, {}, ""};
  const size_t before = sink->errors_of(shown);
  try {
    const Artifact artifact = Artifact::Open(files);
    ArtifactLint lint(artifact, shown, sink);
    lint.Tensors();
    lint.Layers(options);
    if (sink->errors_of(shown) > before) return;  // the following checks need sound rotations
    lint.HeadsAgree(artifact.report());
    LintValidation(CheckArtifact(files).validation, place, sink);
  } catch (const Error& error) {
    if (error.exit_code() == ExitCode::kResources) throw;
    sink->Add("artifact-damaged", place, error.what());
    return;
  }
  if (!options.model) return;
  try {
    CheckGeometry(Artifact::Open(files), *options.model);
  } catch (const InputError& error) {
    sink->Add("model-mismatch", place, error.what());
  }
}

}  // namespace oscar
