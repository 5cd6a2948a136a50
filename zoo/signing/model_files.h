// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The files of a model for signing (OpenSSF Model Signing v1.0, sections 6.1, 6.2, 8.4): a
// directory of regular files, or one file. Symbolic links and special files are refused, even if
// they would be ignored.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zoo/signing/bundle.h"
#include "zoo/signing/model_statement.h"
#include "zoo/signing/trust_error.h"

namespace oscar {

// Converts paths given by a user to paths within the model; paths outside it are dropped. They are
// relative to the working directory if that is inside the model, else relative to the model.
std::vector<std::string> PathsInModel(const std::filesystem::path& model,
                                      std::span<const std::string> paths);

// Makes the statement of a model without the `ignored` paths (files or whole folders of the model)
// and without AlwaysIgnored(). Throws InputError if nothing is left to sign, or for a link or a
// name that is not UTF-8.
ModelStatement StatementOf(const std::filesystem::path& model, std::vector<std::string> ignored);

// Signs a model. The bundle at `output` is complete or absent, and is not part of the model.
void SignModel(const std::filesystem::path& model, std::span<const std::string> ignored,
               const Signer& signer, const std::filesystem::path& output);

struct ModelCheck {
  std::vector<std::string> ignored = {};  // in addition to those in the statement
  bool ignore_unsigned = false;           // accepts files that the statement does not name
};

// Checks that the files are those of the statement. Throws TrustError naming the files: kAltered
// for a changed or missing one, else kExtraFile. Throws InputError.
void CheckModel(const std::filesystem::path& model, const ModelStatement& statement,
                const ModelCheck& check);

// Compares two maps from path to SHA-256 in the same way.
void CompareFiles(const std::map<std::string, std::string>& found,
                  const std::map<std::string, std::string>& signed_files, std::string_view what);

}  // namespace oscar
