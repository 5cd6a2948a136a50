// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Signs and checks the files of a model (OpenSSF Model Signing v1.0, sections 6.1, 6.2, 8.4). A
// model is one regular file, or a directory of regular files. Symbolic links and special files are
// refused, even under ignored paths.
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

// Converts paths given by a user to paths within the model. A relative path is taken relative to
// the working directory if that leads into the model, else relative to the model. Drops paths
// outside the model.
std::vector<std::string> PathsInModel(const std::filesystem::path& model,
                                      std::span<const std::string> paths);

// Makes the statement that is signed. It covers all files of the model except `ignored` (files or
// whole folders, as paths in the model) and AlwaysIgnored(). Throws InputError if no file is left,
// or for a link or a file name that is not UTF-8.
ModelStatement StatementOf(const std::filesystem::path& model, std::vector<std::string> ignored);

// Signs a model and writes the bundle to `output`, atomically. If `output` is inside the model, it
// is not part of what is signed.
void SignModel(const std::filesystem::path& model, std::span<const std::string> ignored,
               const Signer& signer, const std::filesystem::path& output);

struct ModelCheck {
  std::vector<std::string> ignored = {};  // in addition to those in the statement
  bool ignore_unsigned = false;           // accepts files that the statement does not name
};

// Checks that the model's files match the statement. Throws TrustError, which lists the
// differences: kAltered if a signed file was changed or is missing, otherwise kExtraFile for a file
// that was not signed. Throws InputError for a link or special file.
void CheckModel(const std::filesystem::path& model, const ModelStatement& statement,
                const ModelCheck& check);

// Compares two maps from path to SHA-256, and throws TrustError like CheckModel.
void CompareFiles(const std::map<std::string, std::string>& found,
                  const std::map<std::string, std::string>& signed_files, std::string_view what);

}  // namespace oscar
