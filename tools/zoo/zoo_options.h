// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Options of oscar-zoo: one struct, one table per verb. A verb reads only the fields its
// table binds.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "linalg/base/error.h"
#include "tools/cli/option_table.h"
#include "zoo/show/fitting.h"

namespace oscar {

inline constexpr int64_t kMaxSnapshotDays = 3650;

struct ZooOptions {
  std::string zoo;                 // --zoo, or the environment's OSCAR_ZOO
  std::string reference;           // [SOURCE/]NAME[@VERSION]
  std::string artifact, output;    // paths
  std::vector<std::string> paths;  // of lint
  std::string name, version, model, gate;
  bool ungated = false;
  std::vector<std::string> data;  // of the validation that verify makes again; empty: built in
  std::string device = "auto";
  bool json = false;
  // Options of signatures; all are files except `identity`.
  std::string directory, signature, key, certificate, trust, identity;
  std::vector<std::string> chain, public_keys, roots, ignored;
  bool ignore_unsigned = false;
  int64_t days = 30;  // that a snapshot is valid for, at most kMaxSnapshotDays
  SearchQuery query;
  std::string other;                     // the second of diff
  std::string url, title = "oscar zoo";  // of site
  std::string reason;                    // of yank
  std::string ca;                        // PEM file of trusted roots
  int stall_seconds = 30;                // after which a silent server is given up
};

OptionTable InitTable(ZooOptions* options);
OptionTable PublishTable(ZooOptions* options);
OptionTable PushTable(ZooOptions* options);
OptionTable LsTable(ZooOptions* options);
OptionTable InfoTable(ZooOptions* options);
OptionTable VerifyTable(ZooOptions* options);
OptionTable PullTable(ZooOptions* options);
OptionTable LintTable(ZooOptions* options);
OptionTable SignTable(ZooOptions* options);
OptionTable SnapshotTable(ZooOptions* options);
OptionTable SearchTable(ZooOptions* options);
OptionTable ForTable(ZooOptions* options);
OptionTable YankTable(ZooOptions* options);
OptionTable GcTable(ZooOptions* options);
OptionTable MirrorTable(ZooOptions* options);
OptionTable DiffTable(ZooOptions* options);
OptionTable SiteTable(ZooOptions* options);

// Options that several tables have.
void AddTrust(ZooOptions* options, OptionTable* table);  // whom to trust
void AddZoo(ZooOptions* options, OptionTable* table);
void AddSource(ZooOptions* options, OptionTable* table);  // for verbs that read a zoo anywhere
void AddJson(ZooOptions* options, OptionTable* table);
void AddReference(ZooOptions* options, bool required, const char* help, OptionTable* table);

// The problem that `parse` has with a text, for an option's check.
template <typename Parse>
std::function<std::string(const Json&)> CheckedBy(Parse parse) {
  return [parse](const Json& value) -> std::string {
    const auto text = value.get<std::string>();
    if (text.empty()) return "";  // not given
    try {
      parse(text);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
}

// --zoo, else OSCAR_ZOO: an address of OpenSource, or "" if there is neither.
std::string FindZooAddress(const ZooOptions& options);
std::string ZooAddressOf(const ZooOptions& options);  // throws UsageError if there is neither
// The same for verbs that need a directory. Throws UsageError for any other form.
std::filesystem::path ZooPath(const ZooOptions& options);

}  // namespace oscar
