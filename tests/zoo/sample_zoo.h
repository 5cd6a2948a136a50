// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Artifacts that a zoo accepts, and functions that spoil them, without a model.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "capture/files/strict_json.h"
#include "zoo/store/zoo.h"

namespace oscar {

// Reads a JSON file, calls `edit` and writes the result.
void EditJson(const std::filesystem::path& file, const std::function<void(Json&)>& edit);

// Updates the digests in the manifest to those of the files, as a forger would.
void Reseal(const std::filesystem::path& artifact);

// Writes a sample artifact of example/Tiny whose validation passes its gate. `edit` changes the
// validation before the digests are computed.
void WriteValidated(const std::filesystem::path& artifact, unsigned seed = 1,
                    const std::function<void(Json&)>& edit = {});

// Edits the member "validation" of the report and updates the digests.
void EditValidation(const std::filesystem::path& artifact, const std::function<void(Json&)>& edit);

Zoo NewZoo(const std::filesystem::path& path);  // InitZoo and Open

// Returns the bytes of every regular file below a folder, by path, except those in staging/.
std::map<std::string, std::string> TreeBytes(const std::filesystem::path& folder);

void WriteText(const std::filesystem::path& file, const std::string& text);

}  // namespace oscar
