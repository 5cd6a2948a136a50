// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of a chat template: Python's None, bool, int, float, str, dict and sequences, and
// objects (functions, loop, namespace, generators). Traps: templates are written for Python. A
// string is a sequence of code points, although it is stored as UTF-8. The values 1, 1.0 and True
// are equal. A missing variable has a special value (Undefined), which is falsy and prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace oscar::jinja {

class Object;
class Value;
struct Dict;

// Reads the next item of an iteration; returns false at the end.
using Cursor = std::function<bool(Value*)>;

// The kinds of sequences, by Python's names. Ranges and the views of a dict (items, keys, values)
// are copies here, which is safe because values never change.
enum class SequenceKind { kList, kTuple, kRange, kItems, kKeys, kValues };

struct Sequence {
  SequenceKind kind = SequenceKind::kList;
  std::vector<Value> items;
  int depth = 1;
};

class Value {
 public:
  Value() = default;
  static Value None() { return {}; }
  static Value Undefined(std::string why);  // `why` is the error if it is used: "'x' is undefined"
  static Value Bool(bool value) { return Value(Data(value)); }
  static Value Int(int64_t value) { return Value(Data(value)); }
  // An integer beyond 64 bits, "-123...", as read from JSON. It can be printed but not used in
  // arithmetic.
  static Value Big(std::string digits);
  static Value Float(double value) { return Value(Data(value)); }
  // `markup` marks the text as safe HTML, as the filter `safe` does (MarkupSafe's subclass of str).
  // The operator + escapes unmarked text that it joins to such a text.
  static Value String(std::string text, bool markup = false);
  // These throw TemplateFailure if the nesting exceeds kMaxDepth.
  static Value List(std::vector<Value> items, SequenceKind kind = SequenceKind::kList);
  static Value Tuple(std::vector<Value> items) {
    return List(std::move(items), SequenceKind::kTuple);
  }
  static Value FromDict(Dict dict);
  static Value Of(std::shared_ptr<Object> object) { return Value(Data(std::move(object))); }

  bool is_none() const { return Is<std::monostate>(); }
  bool is_undefined() const { return Is<UndefinedTag>(); }
  bool is_bool() const { return Is<bool>(); }
  bool is_int() const { return Is<int64_t>(); }  // neither bool nor big
  bool is_big() const { return Is<BigInteger>(); }
  bool is_float() const { return Is<double>(); }
  bool is_string() const { return Is<Text>(); }
  bool is_items() const { return Is<std::shared_ptr<const Sequence>>(); }  // any kind of sequence
  bool is_list() const { return is_items() && kind() == SequenceKind::kList; }
  bool is_tuple() const { return is_items() && kind() == SequenceKind::kTuple; }
  bool is_sequence() const { return is_list() || is_tuple(); }
  bool is_dict() const { return Is<std::shared_ptr<const Dict>>(); }
  bool is_object() const { return Is<std::shared_ptr<Object>>(); }
  bool is_integral() const { return is_int() || is_bool(); }
  bool is_number() const { return is_integral() || is_float(); }  // usable in arithmetic

  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return is_bool() ? int64_t{as_bool()} : std::get<int64_t>(data_); }
  double as_double() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
  }
  const std::string& big_digits() const { return *std::get<BigInteger>(data_).digits; }
  const std::string& as_string() const { return *std::get<Text>(data_).bytes; }
  bool is_markup() const { return is_string() && std::get<Text>(data_).markup; }
  SequenceKind kind() const { return std::get<std::shared_ptr<const Sequence>>(data_)->kind; }
  const std::vector<Value>& items() const {
    return std::get<std::shared_ptr<const Sequence>>(data_)->items;
  }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Object& object() const { return *std::get<std::shared_ptr<Object>>(data_); }
  // Returns the object in the value; null for other kinds.
  template <class T>
  T* As() const {
    return is_object() ? dynamic_cast<T*>(&object()) : nullptr;
  }

  std::string TypeName() const;  // Python's name: "str", "NoneType"
  bool Truthy() const;
  int depth() const;
  bool SameObject(const Value& other) const;  // Python's operator `is`
  // Throws TemplateFailure with the reason if the value is undefined.
  const Value& Known() const;

  static constexpr int kMaxDepth = 100;

 private:
  struct UndefinedTag {
    std::shared_ptr<const std::string> why;
  };
  struct BigInteger {
    std::shared_ptr<const std::string> digits;
  };
  struct Text {
    std::shared_ptr<const std::string> bytes;  // UTF-8
    bool markup = false;
  };
  using Data = std::variant<std::monostate, UndefinedTag, bool, int64_t, BigInteger, double, Text,
                            std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>,
                            std::shared_ptr<Object>>;
  explicit Value(Data data) : data_(std::move(data)) {}
  template <class T>
  bool Is() const {
    return std::holds_alternative<T>(data_);
  }
  Data data_;
};

// A dict that keeps insertion order.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  std::unordered_map<std::string, size_t> index;  // HashKey of a key -> index into `items`
  int depth = 1;                                  // set when it becomes a Value

  void Set(const Value& key, Value value);  // throws TemplateFailure if the key cannot be hashed
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
};

}  // namespace oscar::jinja
