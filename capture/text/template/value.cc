// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/text/template/objects.h"
#include "capture/text/template/session.h"

namespace oscar::jinja {
namespace {

constexpr const char* kSequenceNames[] = {"list",       "tuple",     "range",
                                          "dict_items", "dict_keys", "dict_values"};

int CheckedDepth(int inner) {
  if (inner < Value::kMaxDepth) return inner + 1;
  throw TemplateFailure(fmt::format("values are nested deeper than {} levels", Value::kMaxDepth));
}

// Equal if the keys are equal in Python: 1, 1.0 and True.
std::string HashKey(const Value& key) {
  if (key.is_string()) return "s" + key.as_string();
  if (key.is_integral()) return "i" + std::to_string(key.as_int());
  if (key.is_big()) return "i" + key.big_digits();
  if (key.is_float()) {
    const double value = key.as_double();
    if (std::floor(value) == value && std::abs(value) < 9.2e18)
      return "i" + std::to_string(static_cast<int64_t>(value));
    return fmt::format("f{}", value);
  }
  if (key.is_none()) return "n";
  if (key.is_undefined()) return "u";
  if (key.is_tuple()) throw TemplateFailure(NotSupported("key type", "tuple"));
  if (key.is_object()) return fmt::format("o{}", static_cast<const void*>(&key.object()));
  throw TemplateFailure(fmt::format("unhashable type: '{}'", key.TypeName()));
}

}  // namespace

std::string NotSupported(std::string_view kind, std::string_view name) {
  return fmt::format("the {} '{}' is not supported, because no known chat template uses it", kind,
                     name);
}

Session::~Session() {
  for (const auto& release : releases_) release();
}
void Session::AtEnd(std::function<void()> release) {
  Step(64);  // `release` is kept until the session ends
  releases_.push_back(std::move(release));
}
void Session::FailSteps() const {
  throw TemplateFailure(
      fmt::format("the template took more than {} steps for one conversation, so it may never end",
                  max_steps_));
}
void Session::FailText() {
  throw TemplateFailure(
      fmt::format("the template made a text of more than {} bytes", kMaxTextBytes));
}
void Session::FailMemory() {
  throw TemplateFailure(
      fmt::format("the template made texts and lists of more than {} bytes for one conversation",
                  kMaxMadeBytes));
}
void Session::FailDepth() {
  throw TemplateFailure(
      fmt::format("macros and expressions are nested deeper than {} levels", kMaxDepth));
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
Value Value::List(std::vector<Value> items, SequenceKind kind) {
  int inner = 0;
  for (const Value& item : items) inner = std::max(inner, item.depth());
  return Value(Data(std::shared_ptr<const Sequence>(
      std::make_shared<Sequence>(Sequence{kind, std::move(items), CheckedDepth(inner)}))));
}
Value Value::FromDict(Dict dict) {
  int inner = 0;
  for (const auto& [key, value] : dict.items) inner = std::max({inner, key.depth(), value.depth()});
  dict.depth = CheckedDepth(inner);
  return Value(Data(std::shared_ptr<const Dict>(std::make_shared<Dict>(std::move(dict)))));
}

std::string Value::TypeName() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int() || is_big()) return "int";
  if (is_float()) return "float";
  if (is_string()) return is_markup() ? "Markup" : "str";
  if (is_items()) return kSequenceNames[static_cast<int>(kind())];
  return is_dict() ? "dict" : object().TypeName();
}

bool Value::Truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_integral()) return as_int() != 0;
  if (is_float()) return as_double() != 0.0;
  if (is_string()) return !as_string().empty();
  if (is_items()) return !items().empty();
  return is_dict() ? !dict().items.empty() : true;
}

int Value::depth() const {
  if (is_items()) return std::get<std::shared_ptr<const Sequence>>(data_)->depth;
  if (is_dict()) return dict().depth;
  return is_object() ? object().depth() : 0;
}

bool Value::SameObject(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_integral()) return as_int() == other.as_int();
  if (is_float()) return as_double() == other.as_double();
  if (is_string()) return as_string() == other.as_string();
  if (is_items()) return &items() == &other.items();
  if (is_dict()) return &dict() == &other.dict();
  if (is_object()) return &object() == &other.object();
  return is_none();
}

const Value& Value::Known() const {
  if (is_undefined()) throw TemplateFailure(*std::get<UndefinedTag>(data_).why);
  return *this;
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
  const auto found = index.find("s" + std::string(key));
  return found == index.end() ? nullptr : &items[found->second].second;
}

}  // namespace oscar::jinja
