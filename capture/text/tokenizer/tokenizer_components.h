// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables of the implemented component types of tokenizer.json, for documentation. A type may only
// have the fields in its table row.
#pragma once

#include <string_view>
#include <vector>

namespace oscar {

std::vector<std::string_view> NormalizerTypes();
std::vector<std::string_view> PreTokenizerTypes();
std::vector<std::string_view> PostProcessorTypes();
std::vector<std::string_view> DecoderTypes();

}  // namespace oscar
