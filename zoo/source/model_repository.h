// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A zoo entry in the form of a model repository of the Hugging Face Hub, checked out on disk. It
// holds the artifact's files unchanged, the entry as oscar-zoo-entry.json, its signatures in
// signatures/, and a .gitattributes that stores large files outside git. The model card is the
// artifact's own README.md, whose front matter (base_model, tags, metrics) the Hub reads.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "zoo/source/zoo_source.h"
#include "zoo/store/zoo_format.h"

namespace oscar {

inline constexpr const char* kRepositoryEntryFile = "oscar-zoo-entry.json";

// Opens a repository as a zoo of one entry. Throws InputError if the directory holds none.
ZooSource RepositorySource(const std::filesystem::path& repository);

// Returns the repository's file for a path of the zoo; "" if it has none.
std::string RepositoryFileOf(const ZooEntry& entry, const std::string& zoo_file);

// Writes the directory `repository`, which must not exist. `file_of` returns the path of a file of
// the entry, by name. `signatures`: the texts of bundles. Throws InputError, ResourceError.
void WriteRepository(const ZooEntry& entry, const std::string& entry_text,
                     const std::function<std::filesystem::path(const std::string&)>& file_of,
                     const std::vector<std::string>& signatures,
                     const std::filesystem::path& repository);

}  // namespace oscar
