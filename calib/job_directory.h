// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of a running calibration on disk, so that a killed run loses no more than the layers
// since the last commit:
//
//     <job>/lock                     held (flock) by the one process that works here
//     <job>/fingerprint.json         what the run is: model, data, options, program; another run is
//     refused, with the differences <job>/layer_00000.h5 ...       one immutable file per finished
//     layer (layer_file.h) <job>/hidden_00003.safetensors hidden states entering layer 3 (by index)
//     <job>/state.json               the commit point: finished layers, digests and sizes of the
//     files above
//
// Every file appears whole (capture/files/atomic_file.h); state.json is written after what it
// names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"

namespace oscar {

class JobDirectory {
 public:
  // Opens the job at `path`, or starts one. Throws InputError listing every differing field if a
  // job with another fingerprint is there, or if its files do not have the digests it recorded;
  // ResourceError if another process works in it. `restart` discards what is there.
  JobDirectory(std::filesystem::path path, const Json& fingerprint, bool restart);
  ~JobDirectory();
  JobDirectory(const JobDirectory&) = delete;
  JobDirectory& operator=(const JobDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  size_t finished_layers() const { return finished_; }
  std::filesystem::path LayerPath(size_t layer_index) const;
  // Hidden states entering the first unfinished layer; nothing before the first commit.
  std::optional<std::filesystem::path> HiddenPath() const;
  // As given to AddLayer.
  const std::vector<Json>& timings() const { return timings_; }

  using Write = std::function<void(const std::filesystem::path&)>;
  // The next layer: `write_layer` writes LayerPath(index). It counts as finished, and survives,
  // from the next Commit() on. `timing` is kept for timings.json and never affects the artifact.
  void AddLayer(const Write& write_layer, const Json& timing);
  // All layers added are finished. `write_hidden` writes the hidden states entering the next one to
  // the path it is given, or is empty after the last layer.
  void Commit(const Write& write_hidden);
  void CommitLayer(const Write& write_layer, const Write& write_hidden, const Json& timing) {
    AddLayer(write_layer, timing);
    Commit(write_hidden);
  }

  // Removes the job from disk.
  void Remove();

 private:
  std::filesystem::path HiddenFile(size_t layer_index) const;
  void WriteState() const;
  void ReadState();
  void RemoveStrays() const;

  std::filesystem::path path_;
  int lock_fd_ = -1;
  std::vector<FileDigest> layers_;  // added
  size_t finished_ = 0;             // of them
  std::optional<FileDigest> hidden_;
  std::vector<Json> timings_;
};

// The differing fields of two JSON values, one line each: "data.digest: was A, now B".
std::vector<std::string> JsonDifferences(const Json& was, const Json& now);

}  // namespace oscar
