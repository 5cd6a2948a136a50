// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The types of the components of tokenizer.json that are implemented: the tables by which they are
// read, for documentation. A type is read with the fields its table row lists, no others.
#pragma once

#include <string_view>
#include <vector>

namespace oscar {

std::vector<std::string_view> NormalizerTypes();
std::vector<std::string_view> PreTokenizerTypes();
std::vector<std::string_view> PostProcessorTypes();
std::vector<std::string_view> DecoderTypes();

}  // namespace oscar
