// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/row_columns.h"

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
#include "linalg/base/error.h"

namespace oscar {
namespace {

using jinja::Value;

std::string Shown(const Value& value) {
  if (value.is_sequence() || value.is_dict()) return value.TypeName();
  jinja::Session session;
  return Escaped(jinja::ToJson(session, value, {}), 80);
}

// Returns the column, unless it is missing or null.
const Value* Column(const Value& object, std::string_view name) {
  const Value* found = object.dict().Find(name);
  return found == nullptr || found->is_none() ? nullptr : found;
}

// Returns the first of `names` that exists.
const char* FirstOf(const Value& object, std::initializer_list<const char*> names) {
  const auto* found = std::ranges::find_if(
      names, [&](const char* name) { return Column(object, name) != nullptr; });
  return found == names.end() ? nullptr : *found;
}

const std::string& Text(const Value& value, const std::string& where, std::string_view what) {
  if (value.is_string()) return value.as_string();
  throw InputError(fmt::format("{}: \"{}\" must be a string, found {}", where, what, Shown(value)));
}

// Converts ShareGPT's names for roles.
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

// Names for a message's reasoning, in transformers' order (utils/chat_template_utils.py).
constexpr const char* kReasoning[] = {"reasoning_content", "thinking", "reasoning"};

// Adds the names that templates read: reasoning_content, and thinking (gpt-oss).
Value WithReasoning(const Value& message) {
  const auto* name = std::ranges::find_if(
      kReasoning, [&](const char* key) { return Column(message, key) != nullptr; });
  if (name == std::end(kReasoning)) return message;
  const Value reasoning = *Column(message, *name);
  jinja::Dict filled;
  filled.Set(Value::String("thinking"), reasoning);
  for (const auto& [key, value] : message.dict().items) filled.Set(key, value);
  filled.Set(Value::String("reasoning_content"), reasoning);
  return Value::FromDict(std::move(filled));
}

// Refuses images and audio, because their tokens cannot be made from text.
void CheckPart(const Value& part, const std::string& where) {
  if (!part.is_dict()) return;
  const Value* type = Column(part, "type");
  const std::string name = type != nullptr && type->is_string() ? type->as_string() : "";
  for (const char* medium : {"image", "audio", "video"}) {
    if (name.find(medium) == name.npos && Column(part, medium) == nullptr) continue;
    throw InputError(fmt::format(
        "{}: this part has type {}, but only text is read; leave out the part or the row", where,
        Quoted(name.empty() ? medium : name)));
  }
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
  // Content may be missing if the message has tool calls or reasoning, and may be a list of parts;
  // the template handles these cases.
  const Value* content = message.dict().Find("content");
  if (content == nullptr && FirstOf(message, {"tool_calls", "function_call", "reasoning_content",
                                              "thinking", "reasoning"}) == nullptr)
    throw InputError(where + ": \"content\" is missing");
  if (content != nullptr && !content->is_none() && !content->is_string() && !content->is_list()) {
    throw InputError(fmt::format("{}: \"content\" must be a string or a list of parts, found {}",
                                 where, Shown(*content)));
  }
  for (size_t i = 0; content != nullptr && content->is_list() && i < content->items().size(); ++i)
    CheckPart(content->items()[i], fmt::format("{}: content[{}]", where, i));
  return WithReasoning(message);
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

// Reads `tools` or `documents`: a list, or a list as JSON text.
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

Value Message(const char* role, const std::string& content) {
  jinja::Dict message;
  message.Set(Value::String("role"), Value::String(role));
  message.Set(Value::String("content"), Value::String(content));
  return Value::FromDict(std::move(message));
}

ChatRow Chat(const Value& object, std::vector<Value> messages, const std::string& where) {
  return {Value::List(std::move(messages)), ListColumn(object, "tools", where),
          ListColumn(object, "documents", where)};
}

// Makes a chat of a row with an instruction. Like LLaMA-Factory, joins instruction and input by a
// newline. `text`, for models without chats, has the format of the data set tatsu-lab/alpaca.
ChatRow ParseInstruction(const Value& object, const std::string& where) {
  const char* const answer = FirstOf(object, {"output", "response", "completion"});
  const char* const context = FirstOf(object, {"input", "context"});
  const auto text_of = [&](const char* name) {
    const Value* column = name == nullptr ? nullptr : Column(object, name);
    return column == nullptr ? std::string() : Text(*column, where, name);
  };
  if (answer == nullptr) {
    throw InputError(where +
                     ": \"instruction\" has no answer; expected \"output\", \"response\" or "
                     "\"completion\" in the same row");
  }
  const std::string instruction = text_of("instruction"), input = text_of(context),
                    output = text_of(answer), system = text_of("system");
  std::vector<Value> messages;
  if (!system.empty()) messages.push_back(Message("system", system));
  messages.push_back(Message("user", input.empty() ? instruction : instruction + "\n" + input));
  messages.push_back(Message("assistant", output));
  ChatRow row = Chat(object, std::move(messages), where);
  row.text = fmt::format(
      "{}### Instruction:\n{}\n\n{}### Response:\n{}",
      !system.empty() ? system + "\n\n"
      : input.empty() ? "Below is an instruction that describes a task. Write a response that "
                        "appropriately completes the request.\n\n"
                      : "Below is an instruction that describes a task, paired with an input that "
                        "provides further context. Write a response that appropriately completes "
                        "the request.\n\n",
      instruction, input.empty() ? "" : "### Input:\n" + input + "\n\n", output);
  return row;
}

// Parses a list of integers. If `size` is given, the list must have that length, and 0 and 1 may
// also be written as false and true.
std::vector<int64_t> Integers(const Value& value, const char* name, std::optional<size_t> size,
                              const std::string& where) {
  if (!value.is_list()) {
    throw InputError(
        fmt::format("{}: \"{}\" must be a list of integers, found {}", where, name, Shown(value)));
  }
  if (size && value.items().size() != *size) {
    throw InputError(
        fmt::format("{}: \"{}\" has {} elements, expected one for each of {} "
                    "input_ids",
                    where, name, value.items().size(), *size));
  }
  std::vector<int64_t> integers;
  integers.reserve(value.items().size());
  for (const Value& item : value.items()) {
    if (!(size ? item.is_integral() : item.is_int())) {
      throw InputError(fmt::format("{}: {}[{}] must be an integer{}, found {}", where, name,
                                   integers.size(), size ? "" : " token id", Shown(item)));
    }
    integers.push_back(item.as_int());
  }
  return integers;
}

constexpr int64_t kIgnoredLabel = -100;  // PyTorch's ignore_index

// Returns the tokens of input_ids that attention_mask keeps, and which of their queries count.
IdsRow ParseIds(const Value& object, const std::string& where) {
  const std::vector<int64_t> all = Integers(*Column(object, "input_ids"), "input_ids", {}, where);
  // Returns 1 or 0 for each token; nothing if there is no such column.
  const auto mask = [&](const char* name, const char* expected, const auto& valid) {
    const Value* column = Column(object, name);
    if (column == nullptr) return std::vector<int64_t>();
    std::vector<int64_t> values = Integers(*column, name, all.size(), where);
    for (size_t i = 0; i < values.size(); ++i) {
      if (valid(values[i])) continue;
      throw InputError(
          fmt::format("{}: {}[{}] is {}, expected {}", where, name, i, values[i], expected));
    }
    return values;
  };
  const auto zero_or_one = [](int64_t value) { return value == 0 || value == 1; };
  const std::vector<int64_t> attention = mask("attention_mask", "0 or 1", zero_or_one),
                             loss = mask("loss_mask", "0 or 1", zero_or_one),
                             labels = mask("labels", "a token id, or -100", [](int64_t value) {
                               return value >= 0 || value == kIgnoredLabel;
                             });
  IdsRow row;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!attention.empty() && attention[i] == 0) {
      ++row.padding;
      continue;
    }
    row.ids.push_back(all[i]);
    row.counted.push_back((loss.empty() || loss[i] == 1) &&
                          (labels.empty() || labels[i] != kIgnoredLabel));
  }
  if (std::ranges::find(row.counted, 0) == row.counted.end()) row.counted.clear();
  return row;
}

// Masks refer to token ids. For a text it would be unclear which tokens they mean.
void CheckNoMasks(const Value& object, const std::string& where) {
  for (const char* name : {"attention_mask", "loss_mask", "labels"}) {
    const Value* column = Column(object, name);
    if (column == nullptr || !column->is_list()) continue;
    throw InputError(
        fmt::format("{}: \"{}\" needs \"input_ids\", but this row has none; give the ids, or leave "
                    "out the column",
                    where, name));
  }
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
  if (ids == nullptr) CheckNoMasks(object, row.where);
  if (ids != nullptr && (chat != nullptr || answer != nullptr || text != nullptr)) {
    throw InputError(fmt::format(
        "{}: the row has both \"input_ids\" and \"{}\"; expected exactly one of them", row.where,
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
    row.value = ParseIds(object, row.where);
  } else if (Column(object, "instruction") != nullptr) {
    row.value = ParseInstruction(object, row.where);
  } else {
    constexpr std::string_view kColumns[] = {"messages", "conversations", "prompt",
                                             "text",     "input_ids",     "instruction"};
    const auto is_null = [&](std::string_view name) {
      const Value* column = object.dict().Find(name);
      return column != nullptr && column->is_none();
    };
    if (std::ranges::any_of(kColumns, is_null) && Column(object, "prompt") == nullptr) return;
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.dict().items) keys.push_back(Quoted(key.as_string()));
    throw InputError(fmt::format(
        "{}: expected one of \"messages\", \"conversations\", \"prompt\" with \"completion\", "
        "\"response\" or \"output\", \"text\", \"input_ids\", \"instruction\" with \"output\"; "
        "found {}",
        row.where, keys.empty() ? "an empty object" : fmt::format("{}", fmt::join(keys, ", "))));
  }
}

}  // namespace oscar
