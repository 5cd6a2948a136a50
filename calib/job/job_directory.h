// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of a running calibration on disk, so that a killed run loses no more than the layers
// since the last commit:
//
// clang-format off
//     <job>/lock                          held (flock) by the one process that works here
//     <job>/self_generated.json           texts the model wrote for itself, before anything else (self_generation.h)
//     <job>/fingerprint.json              what the run is: model, data, options, program; another run is refused,
//                                         with the differences
//     <job>/layer_00000.safetensors ...   one immutable file per finished layer (layer_file.h, shard_directory.h)
//     <job>/hidden_00003.safetensors      hidden states entering layer 3 (by index)
//     <job>/state.json                    the commit point: finished layers, digests and sizes of the files above
// clang-format on
//
// Every file appears whole (capture/files/atomic_file.h); state.json is written after what it
// names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"
#include "linalg/base/error.h"

namespace oscar {

inline constexpr const char* kFingerprintFile = "fingerprint.json";  // of a job
inline constexpr const char* kLayerExtension = "safetensors";        // of layers' files
std::string LayerFileName(size_t layer_index, std::string_view extension = kLayerExtension);
std::string HiddenFileName(size_t layer_index);

// Files of the finished layers, named "layers" and "hidden" in documents.
struct JobFiles {
  std::vector<FileDigest> layers;    // by index
  std::optional<FileDigest> hidden;  // states entering the first layer that is not there

  // Throws InputError naming `what` and the member.
  static JobFiles From(const Json& document, const std::string& what);
  void AddTo(Json& document) const;
};

// The right to work in a job's directory, which it makes if need be. Only one process has it.
class JobLock {
 public:
  JobLock() = default;  // of nothing
  // Throws ResourceError if another process has it. A path converts to a lock, which is then taken.
  JobLock(std::filesystem::path path);  // NOLINT(google-explicit-constructor)
  ~JobLock();
  JobLock(JobLock&& other) noexcept;
  JobLock& operator=(JobLock&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  void DiscardJob() const;  // removes everything but the lock

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

class JobDirectory {
 public:
  // Opens the job at its path, or starts one. Throws OtherRun if a job with another fingerprint is
  // there; InputError if its files do not have the digests it recorded;
  // ResourceError if another process works in it. `restart` discards what is there. `extension`: of
  // its layers' files.
  JobDirectory(JobLock lock, const Json& fingerprint, bool restart,
               std::string_view extension = kLayerExtension);
  virtual ~JobDirectory() = default;
  JobDirectory(const JobDirectory&) = delete;
  JobDirectory& operator=(const JobDirectory&) = delete;

  static bool HasLayers(const JobLock& lock);  // finished ones, of whatever run

  const std::filesystem::path& path() const { return lock_.path(); }
  size_t finished_layers() const { return finished_; }
  std::filesystem::path LayerPath(size_t layer_index) const;
  // Hidden states entering the first unfinished layer; nothing before the first commit.
  std::optional<std::filesystem::path> HiddenPath() const;
  // The timings that were given to AddLayer.
  const std::vector<Json>& timings() const { return timings_; }

  using Write = std::function<void(const std::filesystem::path&)>;
  // Adds the next layer: `write_layer` writes LayerPath(index). The layer counts as finished, and
  // survives, from the next Commit() on. `timing` is kept for timings.json only.
  virtual void AddLayer(const Write& write_layer, const Json& timing);
  // Marks all added layers as finished. `write_hidden` writes the hidden states entering the next
  // layer to a given path; it is empty if none are needed, as after the last layer.
  virtual void Commit(const Write& write_hidden);
  void CommitLayer(const Write& write_layer, const Write& write_hidden, const Json& timing) {
    AddLayer(write_layer, timing);
    Commit(write_hidden);
  }

  const JobFiles& files() const { return files_; }  // whose layers have been added
  // Returns the exception of a run that was asked to stop.
  virtual Interrupted Stopped(size_t num_layers) const;

  // Removes the job from disk.
  void Remove();
  // Moves the job's directory to `path`, which must be new. Files of others move with it; the job's
  // own records do not.
  void MoveTo(const std::filesystem::path& path);

 protected:
  JobDirectory() = default;

 private:
  std::filesystem::path HiddenFile(size_t layer_index) const;
  void WriteState() const;
  void ReadState();
  void RemoveStrays() const;

  JobLock lock_;
  std::string extension_;
  JobFiles files_;
  size_t finished_ = 0;  // of its layers
  std::vector<Json> timings_;
};

// The job of a process that keeps nothing, because another one does.
class NoJob : public JobDirectory {
 public:
  void AddLayer(const Write&, const Json&) override {}
  void Commit(const Write&) override {}
  Interrupted Stopped(size_t) const override { return Interrupted("stopped with all ranks"); }
};

// Returns the differing fields of two JSON values, one a line: "data.digest: was A, now B".
std::vector<std::string> JsonDifferences(const Json& was, const Json& now);
// Returns the same on lines of their own. Values are shown if people can read them; a digest only
// says that its subject has changed.
std::string ReadableDifferences(const Json& was, const Json& now);
// The job at a path is of another run. The message lists the differing fields.
struct OtherRun : InputError {
  using InputError::InputError;
};
// Throws OtherRun if the job at `job` was another run than it is now asked to be.
void CheckSameRun(const std::filesystem::path& job, const Json& was, const Json& now);

}  // namespace oscar
