// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Determines what each path holds, and calls the checks for it.
#include "zoo/lint/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "linalg/base/error.h"
#include "zoo/keep/verify.h"
#include "zoo/lint/lint_artifact.h"
#include "zoo/lint/lint_measure.h"
#include "zoo/lint/lint_pt.h"
#include "zoo/store/linked_entry.h"
#include "zoo/store/zoo.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int kMaxDepth = 16;

// An entry's file, entries/<ORG>/<MODEL>/<X.Y.Z>.json in a zoo.
struct EntryFile {
  fs::path zoo;
  ZooReference reference;
};
std::optional<EntryFile> AsEntryFile(const fs::path& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  const auto version = ParseZooVersion(absolute.stem().string());
  const fs::path model = absolute.parent_path(), org = model.parent_path();
  const std::string name = org.filename().string() + "/" + model.filename().string();
  const fs::path zoo = org.parent_path().parent_path();
  if (!version || absolute.extension() != ".json" || !ZooNameProblem(name).empty() ||
      org.parent_path().filename() != "entries" || !Zoo::LooksLikeOne(zoo)) {
    return std::nullopt;
  }
  return EntryFile{zoo, {ParseZooName(name, "name"), version}};
}

class Linter {
 public:
  explicit Linter(const LintOptions& options) : options_(options), sink_(&report_) {}

  void Path(const fs::path& path) {
    if (!fs::exists(path)) throw InputError(path.string() + ": no such file or directory");
    const size_t before = report_.files;
    if (fs::is_directory(path)) {
      Directory(path, 0);
    } else if (const auto entry = AsEntryFile(path)) {
      ZooEntries(Zoo::Open(entry->zoo), entry->reference);
    } else {
      given_[path.parent_path()].push_back(path);
      return;
    }
    if (report_.files == before) {
      throw InputError(path.string() + ": contains no .pt file, artifact or zoo to check");
    }
  }

  LintReport Finish() {
    for (auto& [folder, files] : given_) PtFiles(std::move(files), false);
    return std::move(report_);
  }

 private:
  void Directory(const fs::path& path, int depth) {
    if (Zoo::LooksLikeOne(path)) return ZooEntries(Zoo::Open(path), std::nullopt);
    if (Artifact::LooksLikeOne(path)) {
      ++report_.files;
      return LintArtifact({path}, options_, &sink_);
    }
    std::vector<fs::path> files, folders;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_regular_file() && entry.path().extension() == ".pt")
        files.push_back(entry.path());
      if (entry.symlink_status().type() == fs::file_type::directory)
        folders.push_back(entry.path());
    }
    PtFiles(std::move(files), true);
    std::sort(folders.begin(), folders.end());
    if (depth == kMaxDepth) {
      if (!folders.empty())
        throw InputError(fmt::format("{}: more than {} folders deep", path.string(), kMaxDepth));
      return;
    }
    for (const fs::path& folder : folders) Directory(folder, depth + 1);
  }

  void PtFiles(std::vector<fs::path> files, bool complete) {
    std::sort(files.begin(), files.end());
    std::vector<PtFacts> facts;
    for (const fs::path& file : files) {
      ++report_.files;
      facts.push_back(LintPtFile(file, &sink_));
    }
    LintPtFolder(facts, complete, options_, &sink_);
  }

  void ZooEntries(const Zoo& zoo, const std::optional<ZooReference>& reference) {
    ++report_.files;
    std::vector<std::string> unsound;
    for (const ZooProblem& problem : Verify(zoo, reference).problems) {
      sink_.Add("zoo-damaged", {zoo.path() / problem.where, {}, {}, ""}, problem.what);
      unsound.push_back(problem.where);
    }
    for (const ZooName& name : zoo.Names()) {
      if (reference && reference->name != name) continue;
      for (const ZooVersion& version : zoo.Versions(name)) {
        if (reference && reference->version && *reference->version != version) continue;
        const fs::path shown = EntryPath(zoo.path(), name, version);
        const std::string where = shown.lexically_relative(zoo.path()).string();
        if (std::find(unsound.begin(), unsound.end(), where) != unsound.end()) continue;
        ++report_.files;
        LintArtifact(FilesOfEntry(zoo, zoo.Read(name, version)), options_, &sink_);
      }
    }
  }

  const LintOptions& options_;
  LintReport report_;
  LintSink sink_;
  std::map<fs::path, std::vector<fs::path>> given_;  // files named on the command line, by folder
};

}  // namespace

LintReport Lint(const std::vector<fs::path>& paths, const LintOptions& options) {
  Linter linter(options);
  for (const fs::path& path : paths) linter.Path(path);
  return linter.Finish();
}

}  // namespace oscar
