// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/chat_format.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "capture/files/mapped_file.h"
#include "capture/files/quote.h"
#include "capture/text/data/message_parts.h"
#include "capture/text/template/json_value.h"
#include "capture/text/tokenizer/tokenizer_files.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using jinja::Value;

// Returns the content of a token, which is a string or {"content": ...}; "" if there is none.
std::string TokenContent(const Json& token, const char* key, const std::string& where) {
  if (token.is_null()) return {};
  if (token.is_object()) return JsonString(token, "content", where + ": " + key);
  return JsonString({{key, token}}, key, where);
}

void AddSpecialTokens(const Json& config, const fs::path& file,
                      ChatTemplate::Variables& variables) {
  const auto add = [&](const std::string& name, const std::string& content) {
    for (const auto& [known, value] : variables) {
      if (known == name) return;
    }
    if (!content.empty()) variables.emplace_back(name, Value::String(content));
  };
  for (const char* name : kSpecialTokenNames) {  // each becomes a variable
    if (const auto found = config.find(name); found != config.end())
      add(name, TokenContent(*found, name, file.string()));
  }
  // Adds other named tokens, such as {"image_token": "<image>"}.
  if (const auto extra = config.find("extra_special_tokens");
      extra != config.end() && extra->is_object()) {
    for (const auto& [name, token] : extra->items())
      add(name, TokenContent(token, name.c_str(), file.string()));
  }
}

std::string ReadText(const fs::path& file) {
  const MappedFile mapped = MappedFile::Open(file);
  return {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()};
}

// Accepts Python's names for constants, which users who know the template's language may type.
Value ParseVariable(const std::string& text, const std::string& where) {
  if (text == "True") return Value::Bool(true);
  if (text == "False") return Value::Bool(false);
  if (text == "None") return Value::None();
  if (!Json::accept(text)) return Value::String(text);
  return jinja::ParseJsonValue(text, where);
}

jinja::CivilTime ParseDate(const std::string& text) {
  std::array<int, 6> parts = {0, 0, 0, 0, 0, 0};
  constexpr std::string_view kSeparators = "--T::";
  size_t count = 0;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (count < parts.size()) {
    const auto [next, error] = std::from_chars(at, end, parts[count]);
    if (error != std::errc() || next - at != (count == 0 ? 4 : 2)) break;
    ++count;
    at = next;
    if (at == end || count == parts.size() || *at != kSeparators[count - 1]) break;
    ++at;
  }
  const auto [year, month, day, hour, minute, second] = parts;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  const bool valid = at == end && (count == 3 || count == 6) && year > 0 && month >= 1 &&
                     month <= 12 && day >= 1 &&
                     day <= kDays[month - 1] + (month == 2 && leap ? 1 : 0) && hour < 24 &&
                     minute < 60 && second < 60 && hour >= 0 && minute >= 0 && second >= 0;
  if (!valid) {
    throw UsageError(
        fmt::format("--date {}: expected a date such as 2026-01-31, or a date and a time such as "
                    "2026-01-31T12:00:00",
                    Quoted(text)));
  }
  return {year, month, day, hour, minute, second};
}

}  // namespace

std::optional<ChatFormat> ChatFormat::Find(const fs::path& model_directory,
                                           const ChatOptions& options) {
  ChatFormat format;
  format.now_ = ParseDate(options.date);
  format.date_ = options.date;
  const fs::path config_file = model_directory / "tokenizer_config.json";
  const Json token_config = ReadTokenizerConfig(model_directory);
  const fs::path old_file = model_directory / "chat_template.json";
  const auto take = [&](const Json& value, const std::string& name) {
    if (!value.is_string())
      throw InputError(
          fmt::format("{}: a chat template must be a string, found {}", name, value.type_name()));
    return ChatTemplate(value.get_ref<const std::string&>(), name);
  };
  if (!options.template_file.empty()) {
    format.default_.emplace(ReadText(options.template_file), options.template_file.string());
  } else if (const fs::path file = model_directory / "chat_template.jinja"; fs::exists(file)) {
    format.default_.emplace(ReadText(file), file.string());
  } else {
    for (const fs::path& json_file : {config_file, old_file}) {
      if (format.default_ || format.with_tools_) continue;
      const Json config = json_file == config_file ? token_config : ReadJsonObject(json_file);
      const auto found = config.find("chat_template");
      if (found == config.end() || found->is_null()) continue;
      const std::string name = json_file.string() + ": chat_template";
      if (!found->is_array()) {
        format.default_ = take(*found, name);
        continue;
      }
      for (const Json& entry : *found) {
        const std::string kind = JsonString(entry, "name", name);
        const Json& source = JsonMember(entry, "template", name);
        if (kind == "default") format.default_ = take(source, name + " \"default\"");
        if (kind == "tool_use") format.with_tools_ = take(source, name + " \"tool_use\"");
      }
      if (!format.default_)
        throw InputError(name + ": the list of templates has none with the name \"default\"");
    }
  }
  if (!format.default_) {
    if (options.variables.empty()) return std::nullopt;
    throw UsageError(
        fmt::format("a variable of the chat template is given ({}), but {} has no chat template; "
                    "give one with --chat-template",
                    options.variables.front(), model_directory.string()));
  }
  AddSpecialTokens(token_config, config_file, format.special_tokens_);
  const fs::path map_file = model_directory / "special_tokens_map.json";
  AddSpecialTokens(ReadJsonObject(map_file), map_file, format.special_tokens_);
  format.given_variables_ = Json::object();
  for (const std::string& variable : options.variables) {
    const size_t equals = variable.find('=');
    if (equals == variable.npos || equals == 0) {
      throw UsageError(fmt::format("--template-var {}: expected NAME=VALUE", Quoted(variable)));
    }
    const std::string name = variable.substr(0, equals);
    if (format.given_variables_.contains(name))
      throw UsageError(fmt::format("--template-var {}: {} is given twice", variable, Quoted(name)));
    const std::string text = variable.substr(equals + 1);
    format.given_variables_[name] = text;
    format.variables_.emplace_back(name, ParseVariable(text, "--template-var " + name));
  }
  return format;
}

// Whether a template prints the text of content parts, not the list as Python would print it.
bool ChatFormat::ReadsParts(const ChatTemplate& source, ChatTemplate::Variables variables) const {
  constexpr const char* kProbe = "oscar probes parts";
  variables[0].second = jinja::ParseJsonValue(
      fmt::format(R"([{{"role":"user","content":[{{"type":"text","text":"{}"}}]}}])", kProbe),
      "parts");
  try {
    const std::string text = source.Render(variables, now_).text;
    return text.find(kProbe) != text.npos && text.find("'text': '") == text.npos;
  } catch (const InputError&) {
    return false;
  }
}

ChatFormat::Rendering ChatFormat::Render(const ChatRow& chat, const std::string& where,
                                         bool generation_prompt) const {
  ChatTemplate::Variables variables = {{"messages", chat.messages},
                                       {"tools", chat.tools},
                                       {"documents", chat.documents},
                                       {"add_generation_prompt", Value::Bool(generation_prompt)}};
  variables.insert(variables.end(), special_tokens_.begin(), special_tokens_.end());
  variables.insert(variables.end(), variables_.begin(), variables_.end());
  const ChatTemplate& source = with_tools_ && !chat.tools.is_none() ? *with_tools_ : *default_;
  if (HasParts(chat.messages) && !ReadsParts(source, variables))
    variables[0].second = WithJoinedParts(chat.messages, where);
  try {
    ChatTemplate::Rendering rendering = source.Render(variables, now_);
    return {std::move(rendering.text), rendering.reads_time};
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", where, error.what()));
  }
}

Json ChatFormat::Describe(bool reads_time) const {
  Json json = {{"sha256", default_->sha256()}, {"variables", given_variables_}};
  if (with_tools_) json["tool_use_sha256"] = with_tools_->sha256();
  if (reads_time) json["date"] = date_;
  return json;
}

}  // namespace oscar
