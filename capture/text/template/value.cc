// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/text/template/compare.h"
#include "capture/text/template/session.h"

namespace oscar::jinja {
namespace {

int CheckedDepth(int inner) {
  if (inner < Value::kMaxDepth) return inner + 1;
  throw TemplateFailure(fmt::format("values are nested deeper than {} levels", Value::kMaxDepth));
}

std::shared_ptr<const Sequence> MakeSequence(std::vector<Value> items, bool is_group) {
  auto sequence = std::make_shared<Sequence>();
  int inner = 0;
  for (const Value& item : items) inner = std::max(inner, item.depth());
  sequence->depth = CheckedDepth(inner);
  sequence->items = std::move(items);
  sequence->is_group = is_group;
  return sequence;
}

}  // namespace

void Session::FailSteps() const {
  throw TemplateFailure(fmt::format(
      "the template took more than {} steps on one conversation; it may never end", max_steps_));
}
void Session::FailText() {
  throw TemplateFailure(fmt::format("a text grew beyond {} bytes", kMaxTextBytes));
}
void Session::FailDepth() {
  throw TemplateFailure(
      fmt::format("macros and expressions are nested deeper than {} levels", kMaxDepth));
}

std::optional<Value> Object::Attribute(Session&, std::string_view) { return std::nullopt; }

Value Object::Call(Session&, Arguments&) {
  throw TemplateFailure(fmt::format("'{}' object is not callable", TypeName()));
}

Value Value::Undefined(std::string why) {
  return Value(Data(UndefinedTag{std::make_shared<const std::string>(std::move(why))}));
}
Value Value::Big(std::string digits) {
  return Value(Data(BigInteger{std::make_shared<const std::string>(std::move(digits))}));
}
Value Value::String(std::string text, bool markup) {
  return Value(Data(Text{std::make_shared<const std::string>(std::move(text)), markup}));
}
Value Value::List(std::vector<Value> items) {
  return Value(Data(ListTag{MakeSequence(std::move(items), false)}));
}
Value Value::Tuple(std::vector<Value> items) {
  return Value(Data(TupleTag{MakeSequence(std::move(items), false)}));
}
Value Value::GroupTuple(Value grouper, Value list) {
  return Value(Data(TupleTag{MakeSequence({std::move(grouper), std::move(list)}, true)}));
}
Value Value::FromDict(Dict dict) {
  int inner = 0;
  for (const auto& [key, value] : dict.items) inner = std::max({inner, key.depth(), value.depth()});
  dict.depth = CheckedDepth(inner);
  return Value(Data(std::shared_ptr<const Dict>(std::make_shared<Dict>(std::move(dict)))));
}
Value Value::Of(std::shared_ptr<Object> object) { return Value(Data(std::move(object))); }

const Sequence& Value::sequence() const {
  if (const auto* list = std::get_if<ListTag>(&data_)) return *list->sequence;
  return *std::get<TupleTag>(data_).sequence;
}
const std::vector<Value>& Value::items() const { return sequence().items; }

std::string Value::TypeName() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int() || is_big()) return "int";
  if (is_float()) return "float";
  if (is_string()) return is_markup() ? "Markup" : "str";
  if (is_list()) return "list";
  if (is_tuple()) return "tuple";
  if (is_dict()) return "dict";
  return object().TypeName();
}

bool Value::Truthy(Session& session) const {
  if (is_undefined() || is_none()) return false;
  if (is_integral()) return as_int() != 0;
  if (is_big()) return true;
  if (is_float()) return as_double() != 0.0;
  if (is_string()) return !as_string().empty();
  if (is_sequence()) return !items().empty();
  if (is_dict()) return !dict().items.empty();
  const std::optional<int64_t> length = object().Length(session);
  return !length || *length != 0;
}

int Value::depth() const {
  if (is_sequence()) return sequence().depth;
  if (is_dict()) return dict().depth;
  return is_object() ? object().depth() : 0;
}

bool Value::SameObject(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_none()) return true;
  if (is_integral()) return as_int() == other.as_int();
  if (is_string())
    return as_text().bytes == other.as_text().bytes || as_string() == other.as_string();
  if (is_sequence()) return &sequence() == &other.sequence();
  if (is_dict()) return &dict() == &other.dict();
  if (is_object()) return &object() == &other.object();
  if (is_undefined()) return &undefined_reason() == &other.undefined_reason();
  return is_float() && as_double() == other.as_double();
}

void Dict::Set(const Value& key, Value value) {
  const auto [found, is_new] = index.emplace(HashKey(key), items.size());
  if (is_new) {
    items.emplace_back(key, std::move(value));
  } else {
    items[found->second].second = std::move(value);
  }
}

const Value* Dict::Find(const Value& key) const {
  const auto found = index.find(HashKey(key));
  return found == index.end() ? nullptr : &items[found->second].second;
}

const Value* Dict::Find(std::string_view key) const {
  const auto found = index.find(StringHashKey(key));
  return found == index.end() ? nullptr : &items[found->second].second;
}

std::vector<std::optional<Value>> Arguments::Bind(std::string_view function,
                                                  std::initializer_list<std::string_view> names,
                                                  size_t required) const {
  if (positional.size() > names.size()) {
    throw TemplateFailure(fmt::format("{}() takes at most {} arguments, {} are given", function,
                                      names.size(), positional.size()));
  }
  std::vector<std::optional<Value>> bound(names.size());
  for (size_t i = 0; i < positional.size(); ++i) bound[i] = positional[i];
  for (const auto& [name, value] : named) {
    const auto* found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw TemplateFailure(
          fmt::format("{}() got an unexpected keyword argument '{}'", function, name));
    }
    std::optional<Value>& slot = bound[static_cast<size_t>(found - names.begin())];
    if (slot) {
      throw TemplateFailure(
          fmt::format("{}() got multiple values for argument '{}'", function, name));
    }
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!bound[i]) {
      throw TemplateFailure(fmt::format("{}() is missing its argument '{}'", function,
                                        *(names.begin() + static_cast<ptrdiff_t>(i))));
    }
  }
  return bound;
}

}  // namespace oscar::jinja
