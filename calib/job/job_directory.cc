// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/job/job_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "capture/files/atomic_file.h"
#include "capture/files/digest_json.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kStateFile = "state.json";
constexpr const char* kLockFile = "lock";
constexpr int kStateVersion = 2;

fs::path RemovedFrom(const fs::path& path) { return path.string() + ".tmp-removed"; }

int LockJob(const fs::path& path) {
  const fs::path file = path / kLockFile;
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0)
    throw ResourceError(fmt::format("{}: cannot create: {}", file.string(), std::strerror(errno)));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    throw ResourceError(
        fmt::format("{}: in use by another process; wait for it to finish, or use another output",
                    path.string()));
  }
  return fd;
}

void CheckFile(const fs::path& path, const FileDigest& expected) {
  if (fs::exists(path) && fs::file_size(path) == expected.size && DigestFile(path) == expected)
    return;
  throw InputError(fmt::format("{}: damaged or missing; the job recorded {} bytes with SHA-256 {}",
                               path.string(), expected.size, expected.sha256),
                   Remedy::kStartOver);
}

const Json& ListIn(const Json& document, const char* key, const std::string& what) {
  const Json& list = JsonMember(document, key, what);
  if (!list.is_array()) throw InputError(fmt::format("{}: {}: expected a list", what, key));
  return list;
}

// Returns whether people can read a line, which is false for digests and lists of digests.
bool IsReadable(const std::string& line) {
  constexpr size_t kLongest = 200, kDigest = 32;  // bytes, hexadecimal digits
  size_t digits = 0;
  for (const char c : line) {
    digits = std::isxdigit(static_cast<unsigned char>(c)) ? digits + 1 : 0;
    if (digits == kDigest) return false;
  }
  return line.size() <= kLongest;
}

void Flatten(const Json& value, const std::string& prefix,
             std::map<std::string, std::string>& fields) {
  if (!value.is_object()) {
    fields[prefix] = value.dump();
    return;
  }
  for (const auto& [key, member] : value.items())
    Flatten(member, prefix.empty() ? key : prefix + "." + key, fields);
}

}  // namespace

std::vector<std::string> JsonDifferences(const Json& was, const Json& now) {
  std::map<std::string, std::string> old_fields, new_fields;
  Flatten(was, "", old_fields);
  Flatten(now, "", new_fields);
  std::set<std::string> keys;
  for (const auto& [key, unused] : old_fields) keys.insert(key);
  for (const auto& [key, unused] : new_fields) keys.insert(key);
  std::vector<std::string> differences;
  for (const std::string& key : keys) {
    const auto text = [&](const std::map<std::string, std::string>& fields) {
      const auto found = fields.find(key);
      return found == fields.end() ? std::string("absent") : found->second;
    };
    if (text(old_fields) != text(new_fields)) {
      differences.push_back(
          fmt::format("{}: was {}, now {}", key, text(old_fields), text(new_fields)));
    }
  }
  return differences;
}

std::string ReadableDifferences(const Json& was, const Json& now) {
  std::string list;
  for (const std::string& line : JsonDifferences(was, now)) {
    std::string said = line;
    if (!IsReadable(line)) {  // the line shows digests
      const std::string field = line.substr(0, line.find(':'));
      said = field.starts_with("data.")    ? "the content of the data has changed"
             : field.starts_with("model.") ? "the files of the model have changed"
                                           : field + ": has changed";
    }
    if (list.find(said) == std::string::npos) list += "\n  " + said;
  }
  return list;
}

void CheckSameRun(const fs::path& job, const Json& was, const Json& now) {
  const std::string list = ReadableDifferences(was, now);
  if (list.empty()) return;
  throw OtherRun(fmt::format("{}: contains an unfinished run that differs from this "
                             "one:{}\ncontinue that run with its own options",
                             job.string(), list),
                 Remedy::kStartOver);
}

JobLock::JobLock(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  fs::remove_all(RemovedFrom(path_), error);
  fs::create_directories(path_, error);
  if (error)
    throw ResourceError(
        fmt::format("{}: cannot create the job directory: {}", path_.string(), error.message()));
  fd_ = LockJob(path_);
}

JobLock::JobLock(JobLock&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

JobLock& JobLock::operator=(JobLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

JobLock::~JobLock() {
  if (fd_ >= 0) close(fd_);
}

void JobLock::DiscardJob() const {
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (entry.path().filename() != kLockFile) fs::remove_all(entry.path());
  }
}

std::string LayerFileName(size_t layer_index, std::string_view extension) {
  return fmt::format("layer_{:05}.{}", layer_index, extension);
}

std::string HiddenFileName(size_t layer_index) {
  return fmt::format("hidden_{:05}.safetensors", layer_index);
}

JobFiles JobFiles::From(const Json& document, const std::string& what) {
  JobFiles files;
  for (const Json& layer : ListIn(document, "layers", what))
    files.layers.push_back(DigestFromJson(layer, what));
  if (document.contains("hidden")) files.hidden = DigestFromJson(document.at("hidden"), what);
  return files;
}

void JobFiles::AddTo(Json& document) const {
  Json& list = document["layers"] = Json::array();
  for (const FileDigest& layer : layers) list.push_back(DigestToJson(layer));
  if (hidden) document["hidden"] = DigestToJson(*hidden);
}

JobDirectory::JobDirectory(JobLock lock, const Json& fingerprint, bool restart,
                           std::string_view extension)
    : lock_(std::move(lock)), extension_(extension) {
  if (restart) lock_.DiscardJob();
  RemoveStrays();
  const fs::path file = path() / kFingerprintFile;
  if (!fs::exists(file)) {
    WriteFileAtomically(file, CanonicalJson(fingerprint));
    return;
  }
  CheckSameRun(path(), ReadJsonFile(file.string()), fingerprint);
  if (fs::exists(path() / kStateFile)) ReadState();
}

bool JobDirectory::HasLayers(const JobLock& lock) { return fs::exists(lock.path() / kStateFile); }

fs::path JobDirectory::LayerPath(size_t layer_index) const {
  return path() / LayerFileName(layer_index, extension_);
}

fs::path JobDirectory::HiddenFile(size_t layer_index) const {
  return path() / HiddenFileName(layer_index);
}

std::optional<fs::path> JobDirectory::HiddenPath() const {
  if (!files_.hidden) return std::nullopt;
  return HiddenFile(finished_);
}

void JobDirectory::RemoveStrays() const {
  for (const auto& entry : fs::directory_iterator(path())) {
    if (entry.path().filename().string().find(".tmp-") != std::string::npos)
      fs::remove_all(entry.path());
  }
}

void JobDirectory::ReadState() {
  const std::string what = (path() / kStateFile).string();
  const Json state = ReadJsonFile(what);
  if (JsonInt(state, "version", what) != kStateVersion) {
    throw InputError(what + ": written by another version of oscar", Remedy::kStartOver);
  }
  files_ = JobFiles::From(state, what);
  finished_ = files_.layers.size();
  for (size_t i = 0; i < finished_; ++i) CheckFile(LayerPath(i), files_.layers[i]);
  if (files_.hidden) CheckFile(HiddenFile(finished_), *files_.hidden);
  timings_ = ListIn(state, "timings", what).get<std::vector<Json>>();
}

void JobDirectory::WriteState() const {
  Json state = {{"version", kStateVersion}, {"timings", timings_}};
  files_.AddTo(state);
  WriteFileAtomically(path() / kStateFile, CanonicalJson(state));
}

void JobDirectory::AddLayer(const Write& write_layer, const Json& timing) {
  const fs::path path = LayerPath(files_.layers.size());
  write_layer(path);
  files_.layers.push_back(DigestFile(path));
  timings_.push_back(timing);
}

void JobDirectory::Commit(const Write& write_hidden) {
  std::optional<FileDigest> hidden;
  if (write_hidden) {
    const fs::path path = HiddenFile(files_.layers.size());
    write_hidden(path);
    hidden = DigestFile(path);
  }
  const fs::path used = HiddenFile(finished_);
  files_.hidden = hidden;
  finished_ = files_.layers.size();
  WriteState();
  std::error_code ignored;  // a hidden-states file left behind only costs space
  fs::remove(used, ignored);
}

Interrupted JobDirectory::Stopped(size_t num_layers) const {
  return Interrupted(fmt::format("stopped after {} of {} layers; the work so far is in {}",
                                 finished_layers(), num_layers, path().string()));
}

void JobDirectory::MoveTo(const fs::path& path) {
  PublishDirectory(this->path(), path);
  std::error_code ignored;  // these files are no longer needed
  for (const char* file : {kStateFile, kFingerprintFile, kLockFile})
    fs::remove(path / file, ignored);
}

// If removal is killed, the directory left is not a job. The next job at this path cleans it up.
void JobDirectory::Remove() {
  std::error_code error, ignored;
  const fs::path removed = RemovedFrom(path());
  fs::remove_all(removed, ignored);
  fs::rename(path(), removed, error);
  fs::remove_all(error ? path() : removed, ignored);
}

}  // namespace oscar
