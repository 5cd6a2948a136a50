// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/json_value.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "capture/files/strict_json.h"
#include "linalg/base/check.h"

namespace oscar::jinja {
namespace {

// Handles the parsing events of a text that ParseStrictJson has accepted.
class Builder {
 public:
  Value Take() { return std::move(root_); }

  bool null() { return Put(Value::None()); }
  bool boolean(bool value) { return Put(Value::Bool(value)); }
  bool number_integer(Json::number_integer_t value) { return Put(Value::Int(value)); }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX)) return Put(Value::Big(std::to_string(value)));
    return Put(Value::Int(static_cast<int64_t>(value)));
  }
  // An integer beyond 64 bits also arrives here, with its digits.
  bool number_float(Json::number_float_t value, const std::string& digits) {
    const bool is_integer = digits.find_first_of(".eE") == digits.npos;
    return Put(is_integer ? Value::Big(digits) : Value::Float(value));
  }
  bool string(std::string& value) { return Put(Value::String(std::move(value))); }
  bool binary(Json::binary_t&) { return false; }

  bool start_object(size_t) { return Open(true); }
  bool start_array(size_t) { return Open(false); }
  bool key(std::string& name) {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() {
    Value dict = Value::FromDict(std::move(open_.back().dict));
    open_.pop_back();
    return Put(std::move(dict));
  }
  bool end_array() {
    Value list = Value::List(std::move(open_.back().items));
    open_.pop_back();
    return Put(std::move(list));
  }
  bool parse_error(size_t, const std::string&, const Json::exception&) { return false; }

 private:
  struct Container {
    bool is_object;
    std::string key;
    Dict dict;
    std::vector<Value> items;
  };
  bool Open(bool is_object) {
    open_.push_back({is_object, {}, {}, {}});
    return true;
  }
  bool Put(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().dict.Set(Value::String(std::move(open_.back().key)), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  Value root_;
  std::vector<Container> open_;
};

}  // namespace

Value ParseJsonValue(std::string_view text, std::string_view what) {
  ParseStrictJson(text, what);  // throws if it refuses the text
  Builder builder;
  const bool complete = Json::sax_parse(text, &builder);
  OSCAR_CHECK(complete);
  return builder.Take();
}

}  // namespace oscar::jinja
