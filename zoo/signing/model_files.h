// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model on disk as its signature sees it (OpenSSF Model Signing v1.0, sections 6.1, 6.2, 8.4): a
// directory of regular files, or one file. A symbolic link or a special file anywhere in it is
// refused, also where it would be ignored.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zoo/signing/bundle.h"
#include "zoo/signing/model_statement.h"

namespace oscar {

// Files as someone named them, as paths below the model: from the working directory if they lie in
// the model from there, else below the model. Those outside are dropped.
std::vector<std::string> PathsInModel(const std::filesystem::path& model,
                                      std::span<const std::string> paths);

// The statement of a model without the paths `ignored` (below the model, whole folders too) and
// AlwaysIgnored(). Throws InputError: nothing is left to sign, a link, a name that is not UTF-8.
ModelStatement StatementOf(const std::filesystem::path& model, std::vector<std::string> ignored);

// Signs a model; the bundle appears at `output` whole or not at all, and is not part of the model.
void SignModel(const std::filesystem::path& model, std::span<const std::string> ignored,
               const Signer& signer, const std::filesystem::path& output);

struct ModelCheck {
  std::vector<std::string> ignored = {};  // below the model, besides those the statement names
  bool ignore_unsigned = false;           // files that the statement does not name are no defect
};

// That the files are those of the statement. Throws TrustError naming them: kAltered (also for a
// missing one) before kExtraFile; InputError.
void CheckModel(const std::filesystem::path& model, const ModelStatement& statement,
                const ModelCheck& check);

// The same of two lists of SHA-256 by path.
void CompareFiles(const std::map<std::string, std::string>& found,
                  const std::map<std::string, std::string>& signed_files, std::string_view what);

}  // namespace oscar
