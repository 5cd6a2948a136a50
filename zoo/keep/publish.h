// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Publishes an artifact into a zoo. Renaming the entry to its final name commits the new version.
// Until then readers do not see it; afterwards all files that the entry names exist.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "zoo/check/artifact_check.h"
#include "zoo/store/zoo.h"

namespace oscar {

struct PublishOptions {
  std::optional<ZooName> name;        // absent: taken from the manifest's model id
  std::optional<ZooVersion> version;  // absent: the next minor version
  ValidationDemands demands;          // an additional gate, or permission to have none
  bool dry_run = false;               // check everything, change nothing
  Json publisher = Json::object();    // the publishing program, and the time
  std::function<void()> waiting;      // see Publisher
};

struct Published {
  ZooEntry entry;
  std::vector<std::string> problems;  // validation problems; if there are any, nothing is published
  Json gates = Json::array();         // the evaluated gates
  bool already = false;  // no version was requested, and the zoo already has this artifact
  size_t new_blobs = 0;
  uint64_t new_bytes = 0;
  ZooVersion latest;
  std::vector<std::string> warnings = {};  // about a new version; its publisher should check them
  std::string index_problem;               // why index.json is not up to date; the rest succeeded
};

// Checks the artifact (CheckArtifact) and publishes it as an entry. Throws InputError for an
// artifact that fails a check, for a version that exists, and if an earlier version with the same
// name and major number belongs to another base model. Throws UsageError if neither the options nor
// the manifest give a valid name, and ResourceError if writing fails. Nothing is ever partly
// published.
Published Publish(const Zoo& zoo, const std::filesystem::path& artifact,
                  const std::optional<ModelGeometry>& model, const PublishOptions& options);

// Publishes into a new model repository, which holds this one version.
Published PublishRepository(const std::filesystem::path& directory,
                            const std::filesystem::path& artifact,
                            const std::optional<ModelGeometry>& model,
                            const PublishOptions& options);

}  // namespace oscar
