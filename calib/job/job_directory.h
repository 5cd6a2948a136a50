// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of a running calibration on disk. A killed run only loses the layers since the last
// commit:
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
// Every file is written atomically (capture/files/atomic_file.h); state.json is written after the
// files that it names.
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

inline constexpr const char* kFingerprintFile = "fingerprint.json";  // inside a job's directory
inline constexpr const char* kLayerExtension = "safetensors";        // for files of layers
std::string LayerFileName(size_t layer_index, std::string_view extension = kLayerExtension);
std::string HiddenFileName(size_t layer_index);

// Files of the finished layers, named "layers" and "hidden" in documents.
struct JobFiles {
  std::vector<FileDigest> layers;    // in the order of layer indices
  std::optional<FileDigest> hidden;  // states entering the first unfinished layer

  // Throws InputError naming `what` and the faulty member.
  static JobFiles From(const Json& document, const std::string& what);
  void AddTo(Json& document) const;
};

// An exclusive lock on a job directory. Acquiring it creates the directory if necessary; only one
// process can hold it.
class JobLock {
 public:
  JobLock() = default;  // locks nothing
  // Throws ResourceError if another process holds it. A path converts to a lock, which acquires it.
  JobLock(std::filesystem::path path);  // NOLINT(google-explicit-constructor)
  ~JobLock();
  JobLock(JobLock&& other) noexcept;
  JobLock& operator=(JobLock&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  void DiscardJob() const;  // removes everything except the lock file

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

class JobDirectory {
 public:
  // Opens the job at the lock's path, or starts one. `restart` discards an existing job.
  // `extension` is the file extension of its layers. Throws OtherRun if there is a job with another
  // fingerprint, InputError if the job's files do not match its recorded digests, ResourceError if
  // another process works in the directory.
  JobDirectory(JobLock lock, const Json& fingerprint, bool restart,
               std::string_view extension = kLayerExtension);
  virtual ~JobDirectory() = default;
  JobDirectory(const JobDirectory&) = delete;
  JobDirectory& operator=(const JobDirectory&) = delete;

  static bool HasLayers(const JobLock& lock);  // whether any run left finished ones

  const std::filesystem::path& path() const { return lock_.path(); }
  size_t finished_layers() const { return finished_; }
  std::filesystem::path LayerPath(size_t layer_index) const;
  // Hidden states entering the first unfinished layer; nothing before the first commit.
  std::optional<std::filesystem::path> HiddenPath() const;
  // The timings passed to AddLayer.
  const std::vector<Json>& timings() const { return timings_; }

  using Write = std::function<void(const std::filesystem::path&)>;
  // Adds the next layer: `write_layer` writes LayerPath(index). The layer counts as finished, and
  // survives a crash, from the next Commit() on. `timing` goes only to timings.json.
  virtual void AddLayer(const Write& write_layer, const Json& timing);
  // Marks all added layers as finished. `write_hidden` writes the hidden states entering the next
  // layer to a given path. It is empty if these are not needed, for example after the last layer.
  virtual void Commit(const Write& write_hidden);
  void CommitLayer(const Write& write_layer, const Write& write_hidden, const Json& timing) {
    AddLayer(write_layer, timing);
    Commit(write_hidden);
  }

  const JobFiles& files() const { return files_; }  // files of the added layers
  // Returns the exception for a run that was asked to stop.
  virtual Interrupted Stopped(size_t num_layers) const;

  // Removes the job from disk.
  void Remove();
  // Moves the job's directory to `path`, which must not exist. The job's own records are removed;
  // unknown files move with the directory.
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
  size_t finished_ = 0;  // number of finished layers
  std::vector<Json> timings_;
};

// The job of a process that stores nothing, because another process does.
class NoJob : public JobDirectory {
 public:
  void AddLayer(const Write&, const Json&) override {}
  void Commit(const Write&) override {}
  Interrupted Stopped(size_t) const override { return Interrupted("stopped with all ranks"); }
};

// Returns the differing fields of two JSON values, one in each line: "data.digest: was A, now B".
std::vector<std::string> JsonDifferences(const Json& was, const Json& now);
// Formats the same differences, one in each line. Shows values that people can read; for a digest
// it only says that what was digested has changed.
std::string ReadableDifferences(const Json& was, const Json& now);
// The job at a path belongs to another run. The message lists the differing fields.
struct OtherRun : InputError {
  using InputError::InputError;
};
// Throws OtherRun if the job at `job` belongs to a run that differs from the requested one.
void CheckSameRun(const std::filesystem::path& job, const Json& was, const Json& now);

}  // namespace oscar
