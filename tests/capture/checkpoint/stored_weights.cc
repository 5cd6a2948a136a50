// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/checkpoint/stored_weights.h"

#include "capture/checkpoint/safetensors.h"
#include "capture/files/atomic_file.h"
#include "tests/support/test_data.h"

namespace oscar {

Checkpoint StoredWeights::Write(const std::string& name) const {
  const std::filesystem::path directory = TestScratch(name);
  WriteFileAtomically(directory / "config.json",
                      Json{{"quantization_config", quantization}}.dump());
  std::vector<SafetensorsWriter::Declaration> declarations;
  for (const auto& [tensor, stored] : tensors)
    declarations.push_back({tensor, stored.dtype, stored.shape});
  SafetensorsWriter writer(directory / "model.safetensors", declarations);
  for (const auto& [tensor, stored] : tensors) writer.Write(tensor, stored.data);
  writer.Commit();
  return Checkpoint::Open(directory);
}

std::vector<uint32_t> PackWords(const std::vector<int>& codes, int bits) {
  std::vector<uint32_t> words((codes.size() * static_cast<size_t>(bits) + 31) / 32);
  for (size_t i = 0; i < codes.size(); ++i) {
    for (size_t b = 0; b < static_cast<size_t>(bits); ++b) {
      const size_t at = i * static_cast<size_t>(bits) + b;
      words[at / 32] |= static_cast<uint32_t>(codes[i] >> b & 1) << (at % 32);
    }
  }
  return words;
}

}  // namespace oscar
