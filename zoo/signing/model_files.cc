// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/signing/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "capture/files/atomic_file.h"
#include "capture/files/digest.h"
#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "linalg/base/error.h"
#include "zoo/signing/trust_error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// The path of the only file of a single-file model. The reference implementation uses it in
// statements, while section 6.1.2 of the standard uses the file's name.
constexpr const char* kWholeModel = ".";

bool IsIgnored(const std::string& path, std::span<const std::string> ignored) {
  return std::ranges::any_of(ignored, [&](const std::string& one) {
    return one == kWholeModel || path == one || path.starts_with(one + "/");
  });
}

// Normalizes an ignored path of a statement; returns nothing for a path outside the model.
std::optional<std::string> IgnoredBelow(const fs::path& model, const std::string& path) {
  const fs::path given(path);
  if (std::find(given.begin(), given.end(), "..") != given.end()) return std::nullopt;
  fs::path below = (model / given).lexically_normal().lexically_relative(model.lexically_normal());
  if (!below.has_filename()) below = below.parent_path();
  if (below.empty() || *below.begin() == "..") return std::nullopt;
  return below.generic_string();
}

// Returns true for a regular file and false for a directory, without following links. Throws for
// anything else.
bool IsRegularFile(const fs::path& path, const fs::file_status& status) {
  if (status.type() == fs::file_type::regular) return true;
  if (status.type() == fs::file_type::directory) return false;
  throw InputError(fmt::format(
      "{}: {}; a model may only contain regular files and folders", Escaped(path.string()),
      status.type() == fs::file_type::symlink     ? "is a symbolic link"
      : status.type() == fs::file_type::not_found ? "does not exist"
                                                  : "is neither a file nor a folder"));
}

std::vector<std::string> FilesOf(const fs::path& model) {
  if (IsRegularFile(model, fs::symlink_status(model))) return {kWholeModel};
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(model, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsRegularFile(entry->path(), entry->symlink_status()))
      files.push_back(entry->path().lexically_relative(model).generic_string());
  }
  if (error) throw InputError(fmt::format("{}: {}", model.string(), error.message()));
  return files;
}

fs::path FileAt(const fs::path& model, const std::string& path) {
  return path == kWholeModel ? model : model / path;
}

// Returns whether a file of the statement exists in the model. Throws InputError if a part of its
// path is a link.
bool IsThere(const fs::path& model, const std::string& path) {
  fs::path at = model;
  bool is_file = IsRegularFile(at, fs::symlink_status(at));
  if (path == kWholeModel) return is_file;
  for (const fs::path& part : fs::path(path)) {
    at /= part;
    const fs::file_status status = fs::symlink_status(at);
    if (is_file || status.type() == fs::file_type::not_found) return false;
    is_file = IsRegularFile(at, status);
  }
  return is_file;
}

std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + Quoted(names[i]);
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace

std::vector<std::string> PathsInModel(const fs::path& model, std::span<const std::string> paths) {
  std::error_code error;
  const fs::path root = fs::weakly_canonical(model, error);
  std::vector<std::string> inside;
  for (const std::string& path : paths) {
    fs::path relative = fs::weakly_canonical(path, error).lexically_relative(root);
    if ((relative.empty() || *relative.begin() == "..") && fs::path(path).is_relative())
      relative = fs::path(path).lexically_normal();
    if (relative.empty() || *relative.begin() == "..") continue;
    std::string text = relative.generic_string();
    if (text.size() > 1 && text.ends_with('/')) text.pop_back();
    inside.push_back(text);
  }
  return inside;
}

ModelStatement StatementOf(const fs::path& model, std::vector<std::string> ignored) {
  ModelStatement statement;
  ignored.insert(ignored.begin(), AlwaysIgnored().begin(), AlwaysIgnored().end());
  statement.ignored = ignored;
  statement.subject = fs::weakly_canonical(model).filename().string();
  if (statement.subject.empty() || FirstInvalidUtf8(statement.subject)) statement.subject = "model";
  for (const std::string& name : FilesOf(model)) {
    if (IsIgnored(name, ignored)) continue;
    if (FirstInvalidUtf8(name)) {
      throw InputError(
          fmt::format("{}: the file name {} is not UTF-8, so it cannot be signed; rename the file",
                      model.string(), Quoted(name)));
    }
    statement.files[name] = DigestFile(FileAt(model, name)).sha256;
  }
  if (statement.files.empty())
    throw InputError(fmt::format("{}: contains no file to sign", model.string()));
  return statement;
}

void SignModel(const fs::path& model, std::span<const std::string> ignored, const Signer& signer,
               const fs::path& output) {
  CheckSigner(signer, model.string());
  std::vector<std::string> paths(ignored.begin(), ignored.end());
  paths.push_back(fs::absolute(output).string());
  const ModelStatement statement = StatementOf(model, PathsInModel(model, paths));
  WriteFileAtomically(output, SignedBundleText(StatementText(statement), signer));
}

void CheckModel(const fs::path& model, const ModelStatement& statement, const ModelCheck& check) {
  std::vector<std::string> ignored = check.ignored;
  ignored.insert(ignored.end(), AlwaysIgnored().begin(), AlwaysIgnored().end());
  for (const std::string& path : statement.ignored)
    if (const auto below = IgnoredBelow(model, path)) ignored.push_back(*below);
  std::map<std::string, std::string> expected = statement.files, found;
  std::vector<std::string> files;
  if (check.ignore_unsigned) {
    for (const auto& [name, sha256] : expected)
      if (IsThere(model, name)) files.push_back(name);
  } else {
    files = FilesOf(model);
  }
  if (files == std::vector<std::string>{kWholeModel} && expected.size() == 1 &&
      expected.begin()->first == model.filename().string()) {
    expected = {{kWholeModel, expected.begin()->second}};
  }
  for (const std::string& name : files)
    if (!IsIgnored(name, ignored)) found[name] = DigestFile(FileAt(model, name)).sha256;
  CompareFiles(found, expected, model.string());
}

void CompareFiles(const std::map<std::string, std::string>& found,
                  const std::map<std::string, std::string>& signed_files, std::string_view what) {
  std::vector<std::string> altered, missing, extra;
  for (const auto& [name, sha256] : signed_files) {
    const auto at = found.find(name);
    if (at == found.end()) {
      missing.push_back(name);
    } else if (at->second != sha256) {
      altered.push_back(name);
    }
  }
  for (const auto& [name, sha256] : found)
    if (!signed_files.contains(name)) extra.push_back(name);
  std::string message;
  const auto add = [&](const char* problem, const std::vector<std::string>& names) {
    if (!names.empty())
      message += fmt::format("{}{}: {}", message.empty() ? "" : "; ", problem, Listed(names));
  };
  add("altered since it was signed", altered);
  add("signed, but missing", missing);
  add("not signed", extra);
  if (message.empty()) return;
  throw TrustError(altered.empty() && missing.empty() ? TrustExit::kExtraFile : TrustExit::kAltered,
                   fmt::format("{}: {}", what, message));
}

}  // namespace oscar
