// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/model_config.h"

#include "capture/checkpoint/gguf/gguf_model.h"

namespace oscar {

bool HasModelConfig(const std::filesystem::path& model) {
  std::error_code ignored;
  return IsGgufPath(model) || std::filesystem::exists(model / "config.json", ignored);
}

Json ReadModelConfig(const std::filesystem::path& model) {
  return IsGgufPath(model) ? GgufModel::Open(model).Config()
                           : ReadConfigJson(ModelConfigName(model));
}

std::string ModelConfigName(const std::filesystem::path& model) {
  return (IsGgufPath(model) ? model : model / "config.json").string();
}

FileDigest DigestModelConfig(const std::filesystem::path& model) {
  if (!IsGgufPath(model)) return DigestFile(model / "config.json");
  const GgufFile file = GgufFile::Open(model);
  return {Sha256Hex(file.file.bytes().first(file.infos_end)), file.infos_end};
}

}  // namespace oscar
