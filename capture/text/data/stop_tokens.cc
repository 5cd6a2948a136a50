// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/stop_tokens.h"

#include <set>
#include <string>

#include "capture/checkpoint/model_config.h"
#include "capture/files/strict_json.h"
#include "capture/text/tokenizer/tokenizer_files.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kIds = "eos_token_id";

void AddIds(const Json& object, const std::string& where, std::set<int64_t>& ids) {
  const auto found = object.find(kIds);
  if (found == object.end() || found->is_null()) return;
  const Json list = found->is_array() ? *found : Json::array({*found});
  for (const Json& id : list) ids.insert(JsonInt({{kIds, id}}, kIds, where));
}

}  // namespace

std::vector<int32_t> StopTokens(const fs::path& model_directory, const Tokenizer* tokenizer,
                                int64_t vocab_size) {
  std::set<int64_t> ids;
  const auto add = [&](const Json& config, const std::string& file) {
    if (!config.is_object()) return;
    AddIds(config, file, ids);
    if (const auto text = config.find("text_config"); text != config.end() && text->is_object())
      AddIds(*text, file + ": text_config", ids);
  };
  if (const fs::path file = model_directory / "generation_config.json"; fs::exists(file))
    add(ReadConfigJson(file.string()), file.string());
  if (HasModelConfig(model_directory))
    add(ReadModelConfig(model_directory), ModelConfigName(model_directory));
  if (tokenizer != nullptr) {
    const Json token = ReadTokenizerConfig(model_directory).value("eos_token", Json());
    const Json content = token.is_object() ? token.value("content", Json()) : token;
    if (content.is_string()) {
      if (const auto id = tokenizer->TokenId(content.get<std::string>())) ids.insert(*id);
    }
  }
  std::vector<int32_t> inside;
  for (const int64_t id : ids)
    if (id >= 0 && id < vocab_size) inside.push_back(static_cast<int32_t>(id));
  return inside;
}

}  // namespace oscar
