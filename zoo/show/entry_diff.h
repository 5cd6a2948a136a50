// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the rotations (angles between their leading subspaces), spectra, clip ratios and
// reported measurements of two artifacts of the same geometry.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/artifact/artifact_reader.h"
#include "linalg/rotation.h"  // Composition

namespace oscar {

// The difference between two artifacts in the keys or values of one layer. Angles are in degrees.
struct SideDiff {
  int layer_id = 0;
  char side = 'k';
  // The largest principal angle (Björck and Golub 1973) between the spans of the leading
  // eigenvectors, which hold kLeadingShare of A's spectrum: maximum and mean over the KV heads.
  double max_angle = 0, mean_angle = 0;
  int64_t leading = 0;  // number of leading eigenvectors of the head with the largest angle
  double spectrum = 0;  // total variation of the normalized spectra, in [0, 1]; mean over heads
  float clip_a = 0, clip_b = 0;
};
inline constexpr double kLeadingShare = 0.9;

struct ArtifactDiff {
  std::string name_a, name_b, identity_a, identity_b;
  std::vector<SideDiff> sides;
  struct Metric {
    std::string name;
    std::optional<double> a, b;
  };
  std::vector<Metric> metrics;  // metrics of the headline arms
};

// Compares two directories that hold artifacts. Throws InputError if the geometries differ or the
// rotations have no eigenvectors.
ArtifactDiff DiffArtifacts(const std::filesystem::path& a, const std::string& name_a,
                           const std::filesystem::path& b, const std::string& name_b);

// Compares one side of one layer. Exposed for tests of DiffArtifacts.
SideDiff DiffSide(int layer_id, char name, const StoredSide& a, const StoredSide& b,
                  Composition composition_a, Composition composition_b);

Json DiffToJson(const ArtifactDiff& diff);
std::string DiffPage(const ArtifactDiff& diff);  // one HTML file

}  // namespace oscar
