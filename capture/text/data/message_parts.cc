// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/message_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "linalg/base/error.h"

namespace oscar {

using jinja::Value;

namespace {

const Value* PartsOf(const Value& message) {
  const Value* content = message.dict().Find("content");
  return content != nullptr && content->is_list() ? content : nullptr;
}

std::string Joined(const Value& parts, const std::string& where) {
  std::string text;
  for (size_t i = 0; i < parts.items().size(); ++i) {
    const Value& part = parts.items()[i];
    const Value* own = part.is_dict() ? part.dict().Find("text") : &part;
    if (own == nullptr || !own->is_string()) {
      throw InputError(fmt::format(
          "{}: content[{}] is not text ({{\"type\": \"text\", \"text\": ...}}), but the chat "
          "template only reads strings; leave out the part, or give another --chat-template",
          where, i));
    }
    text += own->as_string();
  }
  return text;
}

}  // namespace

bool HasParts(const Value& messages) {
  return std::ranges::any_of(messages.items(),
                             [](const Value& message) { return PartsOf(message) != nullptr; });
}

Value WithJoinedParts(const Value& messages, const std::string& where) {
  std::vector<Value> joined;
  for (const Value& message : messages.items()) {
    const Value* parts = PartsOf(message);
    if (parts == nullptr) {
      joined.push_back(message);
      continue;
    }
    jinja::Dict dict;
    for (const auto& [key, value] : message.dict().items) dict.Set(key, value);
    dict.Set(Value::String("content"),
             Value::String(Joined(*parts, fmt::format("{}: message {}", where,
                                                      &message - messages.items().data()))));
    joined.push_back(Value::FromDict(std::move(dict)));
  }
  return Value::List(std::move(joined));
}

}  // namespace oscar
