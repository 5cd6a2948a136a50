// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An artifact into a zoo. The entry is the commit point. Until it has its name nothing of
// what was written can be seen; from then on everything it names is there.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "zoo/check/artifact_check.h"
#include "zoo/store/zoo.h"

namespace oscar {

struct PublishOptions {
  std::optional<ZooName> name;        // absent: the manifest's model id
  std::optional<ZooVersion> version;  // absent: the minor version after the highest
  ValidationDemands demands;          // a gate besides the report's own, or that none is needed
  bool dry_run = false;               // check everything, change nothing
  Json publisher = Json::object();    // program and time
  std::function<void()> waiting;      // see Publisher
};

struct Published {
  ZooEntry entry;
  std::vector<std::string> problems;  // of the validation: not empty means nothing was published
  Json gates = Json::array();         // what was evaluated
  bool already = false;  // no version was asked for, and the artifact has this one already
  size_t new_blobs = 0;
  uint64_t new_bytes = 0;
  ZooVersion latest;
  std::vector<std::string> warnings = {};  // of a new version: what its publisher should look at
  std::string index_problem;               // why index.json is not up to date; all else is done
};

// Checks the artifact (CheckArtifact) and makes it an entry. Throws InputError: an artifact that
// fails a check, a version that exists, another base model under the same name and major version;
// UsageError if no valid name is given or recorded; ResourceError. Nothing is half published.
Published Publish(const Zoo& zoo, const std::filesystem::path& artifact,
                  const std::optional<ModelGeometry>& model, const PublishOptions& options);

// The same into a new model repository, which holds this one version.
Published PublishRepository(const std::filesystem::path& directory,
                            const std::filesystem::path& artifact,
                            const std::optional<ModelGeometry>& model,
                            const PublishOptions& options);

}  // namespace oscar
