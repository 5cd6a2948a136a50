// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Artifacts that a zoo takes, and ways to spoil them, without a model.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "capture/files/strict_json.h"
#include "zoo/store/zoo.h"

namespace oscar {

// Lets `edit` change a JSON file.
void EditJson(const std::filesystem::path& file, const std::function<void(Json&)>& edit);

// Makes the manifest's digests those of the files, as the forger of an artifact would.
void Reseal(const std::filesystem::path& artifact);

// A sample artifact of example/Tiny with a validation that passes its gate; `edit` changes the
// validation before it is sealed.
void WriteValidated(const std::filesystem::path& artifact, unsigned seed = 1,
                    const std::function<void(Json&)>& edit = {});

// The member "validation" of its report.
void EditValidation(const std::filesystem::path& artifact, const std::function<void(Json&)>& edit);

Zoo NewZoo(const std::filesystem::path& path);  // InitZoo and Open

// Every regular file below a folder but staging/, by path, with its bytes.
std::map<std::string, std::string> TreeBytes(const std::filesystem::path& folder);

void WriteText(const std::filesystem::path& file, const std::string& text);

}  // namespace oscar
