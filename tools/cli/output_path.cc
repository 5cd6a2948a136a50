// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output_path.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Returns the folder that contains "a/b" or "a/b/".
fs::path FolderOf(const fs::path& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute.parent_path() : absolute.parent_path().parent_path();
}

// Returns the nearest parent folder that exists. The folders below it may have to be made.
fs::path ExistingFolderOf(const fs::path& path) {
  std::error_code error;
  fs::path folder = FolderOf(path);
  while (!fs::exists(folder, error) && folder != folder.parent_path())
    folder = folder.parent_path();
  return folder;
}

std::string AmountText(uint64_t bytes) {
  return bytes < 1000000000 ? fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6)
                            : fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

void CheckNewOutput(const fs::path& path, bool makes_folders) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) {
    throw InputError(
        fmt::format("{}: exists already; give another -o, or remove it", path.string()));
  }
  const fs::path folder = makes_folders ? ExistingFolderOf(path) : FolderOf(path);
  if (!fs::is_directory(folder, error)) {
    throw InputError(fmt::format(
        "{}: cannot be created, because {} is not a directory; create that directory first",
        path.string(), folder.string()));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw ResourceError(fmt::format("{}: cannot be created in {}: {}", path.string(),
                                    folder.string(), std::strerror(errno)));
  }
}

std::string SpaceProblem(const fs::path& path, uint64_t bytes, const std::string& what) {
  std::error_code error;
  const fs::path folder = ExistingFolderOf(path);
  const fs::space_info space = fs::space(folder, error);
  if (error) return fmt::format("{}: {}", folder.string(), error.message());
  if (space.available >= bytes) return "";
  return fmt::format("{}: {} needs {} of disk space, but only {} are free", folder.string(), what,
                     AmountText(bytes), AmountText(space.available));
}

void CheckSpace(const fs::path& path, uint64_t bytes, const std::string& what) {
  if (const std::string problem = SpaceProblem(path, bytes, what); !problem.empty())
    throw ResourceError(problem);
}

}  // namespace oscar
