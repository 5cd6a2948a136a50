// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/row_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "capture/files/quote.h"
#include "capture/text/template/json_value.h"
#include "capture/text/template/value_text.h"
#include "linalg/error.h"

namespace oscar {
namespace {

using jinja::Value;

std::string Shown(const Value& value) {
  if (value.is_sequence() || value.is_dict()) return value.TypeName();
  jinja::Session session;
  return Escaped(jinja::ToJson(session, value, {}), 80);
}

// The column, unless it is missing or null.
const Value* Column(const Value& object, std::string_view name) {
  const Value* found = object.dict().Find(name);
  return found == nullptr || found->is_none() ? nullptr : found;
}

// The first of `names` that is there.
const char* FirstOf(const Value& object, std::initializer_list<const char*> names) {
  const auto* found = std::ranges::find_if(
      names, [&](const char* name) { return Column(object, name) != nullptr; });
  return found == names.end() ? nullptr : *found;
}

const std::string& Text(const Value& value, const std::string& where, std::string_view what) {
  if (value.is_string()) return value.as_string();
  throw InputError(fmt::format("{}: \"{}\" must be a string, found {}", where, what, Shown(value)));
}

// ShareGPT's names of the roles.
std::string RoleOf(const std::string& from, const std::string& where) {
  static constexpr std::pair<std::string_view, std::string_view> kRoles[] = {
      {"system", "system"},
      {"human", "user"},
      {"user", "user"},
      {"gpt", "assistant"},
      {"assistant", "assistant"},
      {"chatgpt", "assistant"},
      {"model", "assistant"},
      {"bot", "assistant"},
      {"tool", "tool"},
      {"observation", "tool"},
      {"function_response", "tool"}};
  std::vector<std::string_view> known;
  for (const auto& [name, role] : kRoles) {
    if (name == from) return std::string(role);
    known.push_back(name);
  }
  throw InputError(fmt::format("{}: \"from\" is {}; known: {}. Give messages with \"role\" instead",
                               where, Quoted(from), fmt::join(known, ", ")));
}

Value ParseMessage(const Value& message, const std::string& where) {
  if (!message.is_dict()) {
    throw InputError(fmt::format("{}: expected an object with role and content, found {}", where,
                                 Shown(message)));
  }
  if (const Value* from = Column(message, "from"); from && Column(message, "role") == nullptr) {
    jinja::Dict out;
    out.Set(Value::String("role"), Value::String(RoleOf(Text(*from, where, "from"), where)));
    const Value* value = Column(message, "value");
    if (value == nullptr) throw InputError(where + ": \"value\" is missing");
    out.Set(Value::String("content"), Value::String(Text(*value, where, "value")));
    return Value::FromDict(std::move(out));
  }
  const Value* role = Column(message, "role");
  if (role == nullptr) throw InputError(where + ": \"role\" is missing");
  Text(*role, where, "role");
  // Content may be missing beside tool calls, and may be a list of parts: the template decides.
  const Value* content = message.dict().Find("content");
  if (content == nullptr &&
      FirstOf(message, {"tool_calls", "function_call", "reasoning_content"}) == nullptr)
    throw InputError(where + ": \"content\" is missing");
  if (content != nullptr && !content->is_none() && !content->is_string() && !content->is_list()) {
    throw InputError(fmt::format("{}: \"content\" must be a string or a list of parts, found {}",
                                 where, Shown(*content)));
  }
  return message;
}

void AppendMessages(const Value& value, std::string_view column, const std::string& where,
                    std::vector<Value>& messages) {
  if (!value.is_list()) {
    throw InputError(fmt::format("{}: \"{}\" must be a list of {{role, content}}, found {}", where,
                                 column, Shown(value)));
  }
  for (size_t i = 0; i < value.items().size(); ++i) {
    messages.push_back(ParseMessage(value.items()[i], fmt::format("{}: {}[{}]", where, column, i)));
  }
}

// `tools` or `documents`: a list, or a list written as JSON text.
Value ListColumn(const Value& object, const char* name, const std::string& where) {
  const Value* column = Column(object, name);
  if (column == nullptr) return Value::None();
  Value list = *column;
  if (list.is_string()) {
    if (list.as_string().empty()) return Value::None();
    list = jinja::ParseJsonValue(list.as_string(), fmt::format("{}: {}", where, name));
  }
  if (!list.is_list()) {
    throw InputError(fmt::format("{}: \"{}\" must be a list, found {}", where, name, Shown(list)));
  }
  return list;
}

ChatRow Chat(const Value& object, std::vector<Value> messages, const std::string& where) {
  return {Value::List(std::move(messages)), ListColumn(object, "tools", where),
          ListColumn(object, "documents", where)};
}

std::vector<int64_t> ParseIds(const Value& value, const std::string& where) {
  if (!value.is_list()) {
    throw InputError(
        fmt::format("{}: \"input_ids\" must be a list of integers, found {}", where, Shown(value)));
  }
  std::vector<int64_t> ids;
  ids.reserve(value.items().size());
  for (const Value& id : value.items()) {
    if (!id.is_int()) {
      throw InputError(fmt::format("{}: input_ids[{}] must be an integer token id, found {}", where,
                                   ids.size(), Shown(id)));
    }
    ids.push_back(id.as_int());
  }
  return ids;
}

}  // namespace

void ParseRow(const Value& object, DataRow& row) {
  if (!object.is_dict()) {
    throw InputError(fmt::format("{}: expected a JSON object, found {}", row.where, Shown(object)));
  }
  const char* chat = FirstOf(object, {"messages", "conversations"});
  const char* answer =
      Column(object, "prompt") ? FirstOf(object, {"completion", "response", "output"}) : nullptr;
  const Value* text = Column(object, "text");
  const Value* ids = Column(object, "input_ids");
  if (ids != nullptr && (chat != nullptr || answer != nullptr || text != nullptr)) {
    throw InputError(fmt::format(
        "{}: \"input_ids\" stands beside \"{}\"; expected exactly one of them", row.where,
        chat != nullptr     ? chat
        : answer != nullptr ? "prompt"
                            : "text"));
  }
  if (chat != nullptr) {
    std::vector<Value> messages;
    AppendMessages(*Column(object, chat), chat, row.where, messages);
    row.value = Chat(object, std::move(messages), row.where);
  } else if (answer != nullptr) {
    const Value& prompt = *Column(object, "prompt");
    const Value& completion = *Column(object, answer);
    if (prompt.is_list()) {
      std::vector<Value> messages;
      AppendMessages(prompt, "prompt", row.where, messages);
      AppendMessages(completion, answer, row.where, messages);
      row.value = Chat(object, std::move(messages), row.where);
    } else {
      row.value = Text(prompt, row.where, "prompt") + "\n" + Text(completion, row.where, answer);
    }
  } else if (text != nullptr) {
    row.value = Text(*text, row.where, "text");
  } else if (ids != nullptr) {
    row.value = ParseIds(*ids, row.where);
  } else {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.dict().items) keys.push_back(Quoted(key.as_string()));
    throw InputError(fmt::format(
        "{}: expected one of \"messages\", \"conversations\", \"prompt\" with \"completion\", "
        "\"response\" or \"output\", \"text\", \"input_ids\"; found {}",
        row.where, keys.empty() ? "an empty object" : fmt::format("{}", fmt::join(keys, ", "))));
  }
}

}  // namespace oscar
