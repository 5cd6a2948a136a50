// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/weights_sample.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

#include "capture/files/digest.h"
#include "capture/files/posix_file.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

struct stat StatusOf(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0)
    throw InputError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  return status;
}

}  // namespace

Json SampleFile(const fs::path& path) {
  constexpr uint64_t kPage = 4096, kPages = 256, kHead = uint64_t{1} << 20;
  uint64_t size = 0;
  const int file = OpenRegular(path, &size);
  // Only a few pages are needed, so read-ahead would waste time.
  (void)posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
  Sha256 digest;
  std::vector<std::byte> buffer(std::min(size, kHead));
  const auto add = [&](uint64_t offset, uint64_t count) {
    const auto bytes = std::span(buffer).first(count);
    ReadFullyAt(file, bytes, offset, path);
    digest.Add(bytes);
  };
  try {
    add(0, buffer.size());
    const uint64_t stride = std::max(kPage, size / kPages);
    for (uint64_t offset = 0; offset < size; offset += stride)
      add(offset, std::min(kPage, size - offset));
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
  return {{"size", size}, {"sample_sha256", digest.FinishHex()}};
}

Json SampleWeightFiles(const fs::path& directory, const std::vector<std::string>& files) {
  Json samples = Json::object();
  for (const std::string& name : files) samples[name] = SampleFile(directory / name);
  return samples;
}

Json FileIdentities(const fs::path& directory, const std::vector<std::string>& files) {
  Json identities = Json::object();
  for (const std::string& name : files) {
    const struct stat status = StatusOf(directory / name);
    identities[name] = fmt::format("inode {}, changed at {}.{:09}", status.st_ino,
                                   status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  }
  return identities;
}

std::string OpenedFiles(const fs::path& directory, const std::vector<std::string>& files) {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");  // identifies the machine, not a container
  std::string all;
  std::getline(boot, all);
  for (const std::string& name : files) {
    const struct stat status = StatusOf(directory / name);
    all += fmt::format("\n{} {} {} {} {}.{}", name, status.st_dev, status.st_ino, status.st_size,
                       status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return all;
}

}  // namespace oscar
