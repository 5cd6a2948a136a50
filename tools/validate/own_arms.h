// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The user's own methods and arms, from --rotation, --other-artifact, --quantized and --sweep. They
// are measured together with the program's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capture/dump/attention_dump.h"
#include "capture/files/strict_json.h"
#include "export/artifact/artifact_reader.h"
#include "export/simulate/cache_method.h"

namespace oscar {

struct GivenArms {
  GuestMethods methods;
  std::vector<std::string> arms;                        // arms of the methods and of the sweep
  std::vector<std::shared_ptr<const Artifact>> others;  // sources of methods
  std::vector<std::string> found;                       // one line per file that was read
  Json settings = Json::object();                       // the files, for the report
};

struct OwnArmArguments {
  std::vector<std::string> rotations;        // NAME=FILE or NAME=KEYS:VALUES
  std::vector<std::string> other_artifacts;  // NAME=DIR, or DIR, whose last component is the name
  std::vector<std::string> quantized;        // NAME=FILE
  std::string sweep;                         // clip=FIRST:LAST:STEP
};

// Opens and checks all files. `headline`: the arm whose clip ratio --sweep varies; if empty, that
// is OSCAR, with one rotation per head if `artifact` has them. `dump`: the dump to validate on,
// null for a model; --quantized needs one. Throws UsageError for an invalid argument, and for a
// name that a method already has. Throws InputError for a bad file.
GivenArms ReadGivenArms(const OwnArmArguments& arguments, const Artifact& artifact,
                        const std::string& headline, const AttentionDump* dump);

}  // namespace oscar
