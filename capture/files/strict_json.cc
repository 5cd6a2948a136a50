// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// simdjson reads valid text several times faster than nlohmann/json. Text that it refuses is read
// by nlohmann's parser, which reports the reason and the byte. Both check syntax, UTF-8 and the
// range of numbers. Whatever else they accept (a byte order mark, NUL as the end, duplicate keys,
// any depth) is refused here. Longer than 400 lines because both parsers build the same tree.
#include "capture/files/strict_json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "capture/files/json_text.h"
#include "capture/files/mapped_file.h"
#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

[[noreturn]] void Refuse(std::string_view what, size_t offset, const std::string& why) {
  throw InputError(fmt::format("{}: JSON refused at byte {}: {}", what, offset, why));
}

// Reads the text and tells the handler the lexer's position.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  reference operator*() const { return *position; }
  CountingIterator& operator++() {
    ++position;
    ++*consumed;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return position == other.position; }
  bool operator!=(const CountingIterator& other) const { return position != other.position; }

  const char* position;
  size_t* consumed;  // bytes
};

// Builds the document from nlohmann's callbacks. Every callback returns true; refusals are thrown.
class Builder {
 public:
  Builder(std::string_view what, const JsonLimits& limits, const JsonRows* rows,
          const size_t* consumed, size_t* rows_given)
      : what_(what),
        limits_(limits),
        rows_(rows),
        consumed_(consumed),
        rows_given_(rows_given),
        rows_known_(*rows_given) {}

  Json Take() { return std::move(root_); }

  bool null() { return Put(Json(nullptr)); }
  bool boolean(bool value) { return Put(Json(value)); }
  bool number_integer(Json::number_integer_t value) { return Put(Json(value)); }
  bool number_unsigned(Json::number_unsigned_t value) { return Put(Json(value)); }
  // Integers beyond 64 bits also arrive here (tokenizer_config.json has a model_max_length of
  // 1e30). They are kept as double, so that JsonInt refuses them.
  bool number_float(Json::number_float_t value, const std::string&) { return Put(Json(value)); }
  bool string(std::string& value) { return Put(Json(std::move(value))); }
  bool binary(Json::binary_t&) { OSCAR_CHECK(false); }

  bool start_object(size_t) { return Open(Json::object()); }
  bool start_array(size_t) { return Open(Json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }

  bool key(std::string& name) {
    // Canonical JSON has sorted keys, so a comparison with the last key is enough.
    const auto& members = open_.back()->get_ref<const Json::object_t&>();
    if (!members.empty() && !(members.rbegin()->first < name) && members.contains(name)) {
      Refuse(what_, *consumed_, fmt::format("key {} is given twice in one object", Quoted(name)));
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception& error) {
    // Keeps only the last part of "[json.exception...] parse error at line L, column C: reason".
    std::string_view message = error.what();
    if (const size_t colon = message.find(": "); colon != message.npos) {
      message.remove_prefix(colon + 2);
    }
    const bool not_finite = message.ends_with("I'") || message.ends_with("N'");
    Refuse(what_, position,
           Escaped(message) + (not_finite ? "; Python writes Infinity and NaN, which JSON does not "
                                            "allow; use a number or null instead"
                                          : ""));
  }

 private:
  Json* Attach(Json&& value) {
    if (++values_ > limits_.max_values) {
      Refuse(what_, *consumed_, fmt::format("more than {} values", limits_.max_values));
    }
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) return &parent.get_ref<Json::array_t&>().emplace_back(std::move(value));
    auto& members = parent.get_ref<Json::object_t&>();
    return &members.emplace_hint(members.end(), std::move(key_), std::move(value))->second;
  }
  bool Put(Json&& value) {
    Attach(std::move(value));
    return true;
  }
  bool Open(Json&& container) {
    if (open_.size() >= limits_.max_depth) {
      Refuse(what_, *consumed_, fmt::format("nested deeper than {} levels", limits_.max_depth));
    }
    const bool of_rows = rows_ != nullptr && open_.size() == 1 && container.is_array() &&
                         open_.front()->is_object() && key_ == rows_->key;
    open_.push_back(Attach(std::move(container)));
    if (of_rows) of_rows_ = open_.back();
    return true;
  }
  bool Close() {
    if (open_.back() == of_rows_) of_rows_ = nullptr;
    open_.pop_back();
    if (of_rows_ == nullptr || open_.back() != of_rows_) return true;
    auto& kept = of_rows_->get_ref<Json::array_t&>();
    if (rows_known_ > 0) {
      --rows_known_;
    } else {
      rows_->row(std::move(kept.back()));
      ++*rows_given_;
    }
    kept.pop_back();
    return true;
  }

  std::string_view what_;
  const JsonLimits& limits_;
  const JsonRows* rows_;
  Json* of_rows_ = nullptr;  // the open array whose elements are passed to the callback
  const size_t* consumed_;   // bytes read by the lexer
  size_t* rows_given_;       // objects passed on so far by both parsers
  size_t rows_known_;        // reported by the previous parser; these are skipped
  Json root_;
  std::vector<Json*> open_;  // containers around the current value; stable while open
  std::string key_;          // key of the next member
  size_t values_ = 0;
};

// Whether the text may contain the number "-0", which simdjson turns into 0.
bool HasMinusZero(std::string_view text) {
  for (size_t at = text.find("-0"); at != text.npos; at = text.find("-0", at + 2)) {
    const std::string_view next = text.substr(at + 2, 1);
    if (next.empty() || std::string_view(",]} \t\r\n").find(next) != next.npos) return true;
  }
  return false;
}

// Builds the tree from simdjson's result.
class Tree {
 public:
  Tree(const JsonLimits& limits, const JsonRows* rows, size_t* rows_given)
      : limits_(limits), rows_(rows), rows_given_(rows_given) {}

  // Returns false because of a limit or a duplicate key; the other parser then reports which.
  bool Build(const JsonElement& from, Json& to, size_t depth = 0) {
    if (++values_ > limits_.max_values) return false;
    switch (from.type()) {
      case JsonType::OBJECT:
        return depth < limits_.max_depth && Object(from.get_object().value_unsafe(), to, depth + 1);
      case JsonType::ARRAY:
        return depth < limits_.max_depth && Array(from.get_array().value_unsafe(), to, depth + 1);
      case JsonType::STRING:
        to = std::string(from.get_string().value_unsafe());
        return true;
      case JsonType::INT64: {
        const int64_t value = from.get_int64().value_unsafe();
        to = value < 0 ? Json(value) : Json(static_cast<uint64_t>(value));
        return true;
      }
      case JsonType::UINT64:
        to = from.get_uint64().value_unsafe();
        return true;
      case JsonType::DOUBLE:
        to = from.get_double().value_unsafe();
        return true;
      case JsonType::BOOL:
        to = from.get_bool().value_unsafe();
        return true;
      case JsonType::NULL_VALUE:
        return true;
    }
    return false;
  }

 private:
  bool Object(const JsonMembers& from, Json& to, size_t depth) {
    to = Json::object();
    auto& members = to.get_ref<Json::object_t&>();
    for (const auto& [name, value] : from) {
      const size_t before = members.size();
      Json& member = members.try_emplace(members.end(), std::string(name))->second;
      if (members.size() == before) return false;
      const bool of_rows = rows_ != nullptr && depth == 1 && name == rows_->key && value.is_array();
      if (!(of_rows ? Rows(value.get_array().value_unsafe(), member) : Build(value, member, depth)))
        return false;
    }
    return true;
  }
  bool Array(const JsonElements& from, Json& to, size_t depth) {
    if (from.size() > limits_.max_values - values_) return false;
    to = Json::array();
    auto& elements = to.get_ref<Json::array_t&>();
    elements.reserve(from.size());
    for (const JsonElement value : from)
      if (!Build(value, elements.emplace_back(), depth)) return false;
    return true;
  }
  bool Rows(const JsonElements& from, Json& to) {
    if (++values_ > limits_.max_values || limits_.max_depth < 2) return false;
    to = Json::array();
    for (const JsonElement value : from) {
      Json row;
      if (!Build(value, row, 2)) return false;
      if (row.is_structured()) {
        rows_->row(std::move(row));
        ++*rows_given_;
      } else {
        to.push_back(std::move(row));
      }
    }
    return true;
  }

  const JsonLimits& limits_;
  const JsonRows* rows_;
  size_t* rows_given_;
  size_t values_ = 0;
};

[[noreturn]] void WrongType(std::string_view what, const char* key, std::string_view expected,
                            const Json& found) {
  const std::string shown = found.is_structured() ? found.type_name() : found.dump();
  throw InputError(
      fmt::format("{}: \"{}\" must be {}, found {}", what, key, expected, Escaped(shown, 80)));
}

// Returns the member, or null if it is missing or null.
const Json* Find(const Json& object, const char* key, std::string_view what) {
  if (!object.is_object()) {
    throw InputError(
        fmt::format("{}: expected an object with \"{}\", found {}", what, key, object.type_name()));
  }
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

int64_t AsInt(const Json& value, const char* key, std::string_view what) {
  constexpr auto kMax = std::numeric_limits<int64_t>::max();
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMax))) {
    WrongType(what, key, "a 64-bit integer", value);
  }
  return value.get<int64_t>();
}

double AsDouble(const Json& value, const char* key, std::string_view what) {
  if (!value.is_number()) WrongType(what, key, "a number", value);
  return value.get<double>();
}

std::string AsString(const Json& value, const char* key, std::string_view what) {
  if (!value.is_string()) WrongType(what, key, "a string", value);
  return value.get<std::string>();
}

void CheckFinite(const Json& value) {
  if (value.is_number_float()) OSCAR_CHECK(std::isfinite(value.get<double>()));
  if (value.is_structured()) {
    for (const Json& child : value) CheckFinite(child);
  }
}

}  // namespace

bool ReadBySimdjson(std::string_view text, simdjson::dom::parser& parser, JsonElement& root) {
  return !text.starts_with(kByteOrderMark) && !HasMinusZero(text) &&
         parser.parse(text.data(), text.size()).get(root) == simdjson::SUCCESS;
}

Json ParseStrictJson(std::string_view text, std::string_view what, const JsonLimits& limits,
                     const JsonRows* rows) {
  if (text.size() > limits.max_bytes) {
    throw InputError(fmt::format("{}: the JSON has {} bytes, expected at most {}", what,
                                 text.size(), limits.max_bytes));
  }
  if (text.starts_with(kByteOrderMark)) Refuse(what, 0, "a byte order mark");
  size_t consumed = 0, rows_given = 0;
  simdjson::dom::parser parser;
  JsonElement root;
  Json tree;
  if (ReadBySimdjson(text, parser, root) && Tree(limits, rows, &rows_given).Build(root, tree))
    return tree;
  if (const size_t nul = text.find('\0'); nul != text.npos) Refuse(what, nul, "a NUL byte");
  Builder builder(what, limits, rows, &consumed, &rows_given);
  const CountingIterator begin{text.data(), &consumed};
  const CountingIterator end{text.data() + text.size(), &consumed};
  const bool complete = Json::sax_parse(begin, end, &builder);
  OSCAR_CHECK(complete);  // every refusal is thrown
  return builder.Take();
}

Json ReadJsonFile(const std::string& path, const JsonLimits& limits) {
  const MappedFile file = MappedFile::Open(path);
  const auto bytes = file.bytes();
  return ParseStrictJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, limits);
}

Json ReadConfigJson(const std::string& path) {
  const MappedFile file = MappedFile::Open(path);
  const auto bytes = file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string quoted;  // such numbers become strings
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    size_t length = 1;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) length = 2;
    if (text[i] == '"') in_string = !in_string;
    if (!in_string) {
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
        if (text.substr(i).starts_with(word)) length = word.size();
    }
    const bool number = !in_string && length > 1;
    quoted += number ? fmt::format("\"{}\"", text.substr(i, length)) : text.substr(i, length);
    i += length;
  }
  return ParseStrictJson(quoted.size() == text.size() ? text : quoted, path);
}

std::string CanonicalJson(const Json& value) {
  CheckFinite(value);
  try {
    return value.dump(1) + '\n';
  } catch (const Json::type_error& error) {
    throw InputError(
        fmt::format("text that is not UTF-8 cannot be written as JSON: {}", Escaped(error.what())));
  }
}

const Json& JsonMember(const Json& object, const char* key, std::string_view what) {
  const Json* const member = Find(object, key, what);
  if (member == nullptr) throw InputError(fmt::format("{}: \"{}\" is missing", what, key));
  return *member;
}

const Json& JsonArray(const Json& object, const char* key, std::string_view what) {
  const Json& member = JsonMember(object, key, what);
  if (!member.is_array()) WrongType(what, key, "an array", member);
  return member;
}

int64_t JsonInt(const Json& object, const char* key, std::string_view what) {
  return AsInt(JsonMember(object, key, what), key, what);
}
int64_t JsonInt(const Json& object, const char* key, int64_t fallback, std::string_view what) {
  const Json* const member = Find(object, key, what);
  return member == nullptr ? fallback : AsInt(*member, key, what);
}

int JsonInt32(const Json& object, const char* key, std::string_view what) {
  const int64_t value = JsonInt(object, key, what);
  if (value != static_cast<int32_t>(value))
    WrongType(what, key, "a 32-bit integer", JsonMember(object, key, what));
  return static_cast<int>(value);
}

double JsonDouble(const Json& object, const char* key, std::string_view what) {
  return AsDouble(JsonMember(object, key, what), key, what);
}
double JsonDouble(const Json& object, const char* key, double fallback, std::string_view what) {
  const Json* const member = Find(object, key, what);
  return member == nullptr ? fallback : AsDouble(*member, key, what);
}

bool JsonBool(const Json& object, const char* key, bool fallback, std::string_view what) {
  const Json* const member = Find(object, key, what);
  if (member == nullptr) return fallback;
  if (!member->is_boolean()) WrongType(what, key, "true or false", *member);
  return member->get<bool>();
}

std::string JsonString(const Json& object, const char* key, std::string_view what) {
  return AsString(JsonMember(object, key, what), key, what);
}
std::string JsonString(const Json& object, const char* key, std::string_view fallback,
                       std::string_view what) {
  const Json* const member = Find(object, key, what);
  return member == nullptr ? std::string(fallback) : AsString(*member, key, what);
}

}  // namespace oscar
