// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/show/entry_diff.h"

#include <fmt/format.h>

#include <Eigen/SVD>
#include <cmath>
#include <numbers>
#include <tuple>

#include "export/artifact/artifact_format.h"
#include "export/artifact/artifact_reader.h"
#include "export/evaluate/gate.h"
#include "export/report/html.h"
#include "export/report/page_shell.h"
#include "linalg/base/error.h"
#include "linalg/rotation.h"
#include "zoo/check/validation_check.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr double kDegrees = 180 / std::numbers::pi;

// Returns the eigenvectors [d, d] of a head's rotation, with ascending eigenvalues.
Matrix EigenvectorsOf(const StoredSide& side, int64_t head, Composition composition) {
  const auto d = static_cast<Eigen::Index>(side.dim);
  using DoubleRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Matrix r = Eigen::Map<const DoubleRows>(side.rotation.data() + head * d * d, d, d);
  return RecoverEigenvectors(r, composition);
}

Vector SpectrumOf(const StoredSide& side, int64_t head) {
  const auto d = static_cast<Eigen::Index>(side.dim);
  const Vector values =
      Eigen::Map<const Eigen::VectorXf>(side.eigenvalues.data() + head * d, d).cast<double>();
  return values.cwiseMax(0) / std::max(values.cwiseMax(0).sum(), 1e-300);
}

// Returns how many leading eigenvectors hold kLeadingShare of the spectrum, which is ascending.
Eigen::Index Leading(const Vector& spectrum) {
  double sum = 0;
  Eigen::Index count = 0;
  while (count < spectrum.size() && sum < kLeadingShare) sum += spectrum[spectrum.size() - ++count];
  return count;
}

// Returns the largest principal angle between the spans of two orthonormal bases [d, k], in
// radians. Small angles are computed from the sine, because a cosine near 1 has little precision
// (Björck and Golub 1973, section 2).
double LargestAngle(const Matrix& a, const Matrix& b) {
  const Matrix cosines = a.transpose() * b;
  const double cosine = Eigen::JacobiSVD<Matrix>(cosines).singularValues().minCoeff();
  if (cosine < std::numbers::sqrt2 / 2) return std::acos(cosine);
  return std::asin(std::min(1.0, Eigen::JacobiSVD<Matrix>(b - a * cosines).singularValues()[0]));
}

}  // namespace

SideDiff DiffSide(int layer_id, char name, const StoredSide& a, const StoredSide& b,
                  Composition composition_a, Composition composition_b) {
  if (a.num_rotations != b.num_rotations || a.dim != b.dim) {
    throw InputError(
        fmt::format("layer {}, {}: {} rotations of dimension {} and {} of {}; only artifacts with "
                    "the same geometry can be compared",
                    layer_id, name, a.num_rotations, a.dim, b.num_rotations, b.dim));
  }
  SideDiff out{.layer_id = layer_id, .side = name, .clip_a = a.clip_ratio, .clip_b = b.clip_ratio};
  for (int64_t head = 0; head < a.num_rotations; ++head) {
    const Vector spectrum_a = SpectrumOf(a, head), spectrum_b = SpectrumOf(b, head);
    const Eigen::Index leading = Leading(spectrum_a);
    const double angle = LargestAngle(EigenvectorsOf(a, head, composition_a).rightCols(leading),
                                      EigenvectorsOf(b, head, composition_b).rightCols(leading)) *
                         kDegrees;
    if (head == 0 || angle > out.max_angle) {
      out.max_angle = angle;
      out.leading = leading;
    }
    const auto heads = static_cast<double>(a.num_rotations);
    out.mean_angle += angle / heads;
    out.spectrum += (spectrum_a - spectrum_b).cwiseAbs().sum() / 2 / heads;
  }
  return out;
}

namespace {

Composition CompositionOf(const Artifact& artifact) {
  const Json::json_pointer at("/calibration/composition");
  const std::string what = (artifact.directory() / kManifestFile).string();
  if (!artifact.manifest().contains(at) || !artifact.manifest().at(at).is_string())
    throw InputError(what + ": does not say how its rotations are composed");
  return CompositionFromName(artifact.manifest().at(at).get<std::string>());
}

std::optional<double> Metric(const Json& summary, std::string_view name) {
  const Json metrics = summary.value("metrics", Json::object());
  const auto found = metrics.find(std::string(name));
  return found == metrics.end() ? std::nullopt : std::optional(found->get<double>());
}

Json SummaryOf(const Artifact& artifact) {
  const Json report = artifact.report();
  const FileDigest rotations = DigestFile(artifact.directory() / kRotationsFile);
  return CheckValidation(report, artifact.manifest(), rotations, {.ungated = true},
                         (artifact.directory() / kReportFile).string())
      .summary;
}

}  // namespace

ArtifactDiff DiffArtifacts(const fs::path& path_a, const std::string& name_a,
                           const fs::path& path_b, const std::string& name_b) {
  const Artifact a = Artifact::Open(path_a), b = Artifact::Open(path_b);
  if (a.layer_ids() != b.layer_ids()) {
    throw InputError(fmt::format(
        "{} and {} have different layers; only artifacts with the same geometry can be compared",
        name_a, name_b));
  }
  const Composition composition_a = CompositionOf(a), composition_b = CompositionOf(b);
  ArtifactDiff diff{name_a, name_b, a.identity(), b.identity(), {}, {}};
  for (const int id : a.layer_ids()) {
    const StoredLayer x = a.ReadLayer(id), y = b.ReadLayer(id);
    for (const auto& [name, of_a, of_b] :
         {std::tuple('k', &x.k, &y.k), std::tuple('v', &x.v, &y.v)}) {
      if (of_a->num_rotations > 0 || of_b->num_rotations > 0)
        diff.sides.push_back(DiffSide(id, name, *of_a, *of_b, composition_a, composition_b));
    }
  }
  const Json summary_a = SummaryOf(a), summary_b = SummaryOf(b);
  for (const Measure& metric : GateMetrics()) {
    const auto of_a = Metric(summary_a, metric.name), of_b = Metric(summary_b, metric.name);
    if (of_a || of_b) diff.metrics.push_back({std::string(metric.name), of_a, of_b});
  }
  return diff;
}

Json DiffToJson(const ArtifactDiff& diff) {
  Json sides = Json::array(), metrics = Json::object();
  for (const SideDiff& side : diff.sides) {
    sides.push_back({{"layer_id", side.layer_id},
                     {"side", std::string(1, side.side)},
                     {"max_angle_degrees", side.max_angle},
                     {"mean_angle_degrees", side.mean_angle},
                     {"leading", side.leading},
                     {"spectrum_distance", side.spectrum},
                     {"clip_ratio", {side.clip_a, side.clip_b}}});
  }
  for (const auto& [name, a, b] : diff.metrics)
    metrics[name] = {a ? Json(*a) : Json(nullptr), b ? Json(*b) : Json(nullptr)};
  return {{"a", {{"name", diff.name_a}, {"identity", diff.identity_a}}},
          {"b", {{"name", diff.name_b}, {"identity", diff.identity_b}}},
          {"metrics", metrics},
          {"sides", sides}};
}

std::string DiffPage(const ArtifactDiff& diff) {
  std::vector<TableRow> metrics, sides;
  for (const auto& [name, a, b] : diff.metrics) {
    const auto text = [](const std::optional<double>& value) {
      return value ? FormatNumber(*value, Format::kError) : std::string("–");
    };
    metrics.push_back({{Html(name), text(a), text(b)}, ""});
  }
  for (const SideDiff& side : diff.sides) {
    sides.push_back({{fmt::format("{} {}", side.layer_id, side.side),
                      fmt::format("{:.2f}", side.max_angle), fmt::format("{:.2f}", side.mean_angle),
                      fmt::format("{}", side.leading), fmt::format("{:.4f}", side.spectrum),
                      fmt::format("{:.3f}", side.clip_a), fmt::format("{:.3f}", side.clip_b)},
                     ""});
  }
  return RenderPage(
      "diff",
      fmt::format("<h1>Two artifacts</h1>\n<dl><dt>A</dt><dd>{}<br><code>{}</code></dd>\n"
                  "<dt>B</dt><dd>{}<br><code>{}</code></dd></dl>\n",
                  Html(diff.name_a), diff.identity_a, Html(diff.name_b), diff.identity_b),
      {{"measured", "Measured", "Measurements in their reports",
        Table("metrics", {"metric", "A", "B"}, metrics)},
       {"sides", "Layers", "Rotations, spectra, clip ratios",
        Table("layers",
              {"layer, side", "largest angle, degrees", "mean over heads", "leading eigenvectors",
               "spectra", "clip A", "clip B"},
              sides) +
            Note("Angles: the largest principal angle between the spaces of the leading "
                 "eigenvectors that carry 90 % of A's spectrum. Spectra: the total variation "
                 "between the normalized spectra.")}},
      "", {.kind = "oscar diff"});
}

}  // namespace oscar
