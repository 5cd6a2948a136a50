// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of a chat template: Python's None, bool, int, float, str, list, tuple and dict, and
// objects (macros, loop, namespace, iterators). Trap: templates are written for Python, so a string
// is a sequence of code points although it is stored as UTF-8, 1 == 1.0 == True, and a missing
// variable is a value of its own (Undefined) that is falsy and prints as nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace oscar::jinja {

class Session;
class Value;
struct Arguments;

// Next item of an iteration; false at the end.
using Cursor = std::function<bool(Value*)>;

// Python's str; `markup` is MarkupSafe's subclass, which escapes what is added to it.
struct Text {
  std::shared_ptr<const std::string> bytes;  // UTF-8
  bool markup = false;
};

// An integer beyond 64 bits, as read from JSON: it can be compared and printed, not computed with.
struct BigInteger {
  std::shared_ptr<const std::string> digits;  // "-123..."
};

struct Sequence;
struct Dict;
class Object;

class Value {
 public:
  struct UndefinedTag {
    std::shared_ptr<const std::string> why;  // the error of using it: "'x' is undefined"
  };
  struct NoneTag {};

  Value() : data_(NoneTag{}) {}
  static Value None() { return Value(); }
  static Value Undefined(std::string why);
  static Value Bool(bool value) { return Value(Data(value)); }
  static Value Int(int64_t value) { return Value(Data(value)); }
  static Value Big(std::string digits);
  static Value Float(double value) { return Value(Data(value)); }
  static Value String(std::string text, bool markup = false);
  // These throw TemplateFailure for nesting beyond kMaxDepth.
  static Value List(std::vector<Value> items);
  static Value Tuple(std::vector<Value> items);
  static Value GroupTuple(Value grouper, Value list);  // of the filter groupby
  static Value FromDict(Dict dict);
  static Value Of(std::shared_ptr<Object> object);

  bool is_undefined() const { return std::holds_alternative<UndefinedTag>(data_); }
  bool is_none() const { return std::holds_alternative<NoneTag>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }  // not bool, not big
  bool is_big() const { return std::holds_alternative<BigInteger>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_string() const { return std::holds_alternative<Text>(data_); }
  bool is_list() const { return std::holds_alternative<ListTag>(data_); }
  bool is_tuple() const { return std::holds_alternative<TupleTag>(data_); }
  bool is_sequence() const { return is_list() || is_tuple(); }
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<const Dict>>(data_); }
  bool is_object() const { return std::holds_alternative<std::shared_ptr<Object>>(data_); }
  bool is_integral() const { return is_int() || is_bool(); }
  bool is_number() const { return is_integral() || is_float(); }  // that can be computed with

  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return is_bool() ? int64_t{as_bool()} : std::get<int64_t>(data_); }
  double as_double() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
  }
  const std::string& big_digits() const { return *std::get<BigInteger>(data_).digits; }
  const Text& as_text() const { return std::get<Text>(data_); }
  const std::string& as_string() const { return *as_text().bytes; }
  bool is_markup() const { return is_string() && as_text().markup; }
  const Sequence& sequence() const;  // of a list or tuple
  const std::vector<Value>& items() const;
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Object& object() const { return *std::get<std::shared_ptr<Object>>(data_); }
  const std::shared_ptr<Object>& object_pointer() const {
    return std::get<std::shared_ptr<Object>>(data_);
  }
  const std::string& undefined_reason() const { return *std::get<UndefinedTag>(data_).why; }

  // The object behind it, or null: null for another kind too.
  template <class T>
  T* As() const {
    return is_object() ? dynamic_cast<T*>(&object()) : nullptr;
  }

  std::string TypeName() const;  // Python's: "str", "NoneType"
  bool Truthy(Session& session) const;
  int depth() const;
  bool SameObject(const Value& other) const;  // Python's `is`

  static constexpr int kMaxDepth = 100;

 private:
  struct ListTag {
    std::shared_ptr<const Sequence> sequence;
  };
  struct TupleTag {
    std::shared_ptr<const Sequence> sequence;
  };
  using Data = std::variant<UndefinedTag, NoneTag, bool, int64_t, BigInteger, double, Text, ListTag,
                            TupleTag, std::shared_ptr<const Dict>, std::shared_ptr<Object>>;
  explicit Value(Data data) : data_(std::move(data)) {}
  Data data_;
};

struct Sequence {
  std::vector<Value> items;
  int depth = 1;
  bool is_group = false;  // has .grouper and .list
};

// Keeps the order of insertion. Keys are told apart by HashKey() (compare.h).
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  std::unordered_map<std::string, size_t> index;  // HashKey -> position in `items`
  int depth = 1;                                  // set when it becomes a Value

  void Set(const Value& key, Value value);  // TemplateFailure for a key that cannot be hashed
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
};

// Whatever is not plain data. The default of each operation is that Python's object has it not.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string TypeName() const = 0;
  virtual std::string Repr(Session&) const { return "<" + TypeName() + " object>"; }
  virtual std::optional<Value> Attribute(Session&, std::string_view name);
  virtual bool callable() const { return false; }
  virtual Value Call(Session& session, Arguments& arguments);
  virtual std::optional<Cursor> Iterate(Session&) { return std::nullopt; }
  virtual std::optional<int64_t> Length(Session&) { return std::nullopt; }
  // obj[index], where Python's type has it.
  virtual std::optional<Value> Item(Session&, const Value&) { return std::nullopt; }
  virtual bool is_sequence() const { return false; }
  virtual int depth() const { return 1; }  // of nesting of values
};

// What a call passes.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // Values of the parameters `names` in order, missing ones empty. TemplateFailure naming
  // `function` for too many, unknown or doubled arguments, and if one of the first `required` is
  // missing.
  std::vector<std::optional<Value>> Bind(std::string_view function,
                                         std::initializer_list<std::string_view> names,
                                         size_t required) const;
};

}  // namespace oscar::jinja
