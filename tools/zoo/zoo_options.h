// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of oscar-zoo: one struct, and a table for each verb. A verb reads only the fields
// that its table sets.
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
  std::string zoo;                 // --zoo, or OSCAR_ZOO in the environment
  std::string reference;           // [SOURCE/]NAME[@VERSION]
  std::string artifact, output;    // paths
  std::vector<std::string> paths;  // paths to lint
  std::string name, version, model, gate;
  bool ungated = false;
  std::vector<std::string> data;  // text for repeated validations; empty: the built-in text
  std::string device = "auto";
  bool json = false;
  // Options for signatures. All are files except `identity`.
  std::string directory, signature, key, certificate, trust, identity;
  std::vector<std::string> chain, public_keys, roots, ignored;
  bool ignore_unsigned = false;
  int64_t days = 30;  // validity of a snapshot, at most kMaxSnapshotDays
  SearchQuery query;
  std::string other;                     // second artifact for diff
  std::string url, title = "oscar zoo";  // for site
  std::string reason;                    // reason for yank
  std::string ca;                        // PEM file of trusted roots
  int stall_seconds = 30;                // gives up on a server that is silent for longer
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

// Options that several tables share.
void AddTrust(ZooOptions* options, OptionTable* table);  // the trust policy
void AddZoo(ZooOptions* options, OptionTable* table);
void AddSource(ZooOptions* options, OptionTable* table);  // for verbs that read any zoo
void AddJson(ZooOptions* options, OptionTable* table);
void AddReference(ZooOptions* options, bool required, const char* help, OptionTable* table);

// Makes a check of an option: it returns the message of the error that `parse` throws, or "".
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

// Returns --zoo, else OSCAR_ZOO: an address for OpenSource, or "" if neither is given.
std::string FindZooAddress(const ZooOptions& options);
std::string ZooAddressOf(const ZooOptions& options);  // throws UsageError if neither is given
// Returns the zoo's directory. Throws UsageError for an address of any other kind.
std::filesystem::path ZooPath(const ZooOptions& options);

}  // namespace oscar
