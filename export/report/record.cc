// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/record.h"

#include <fmt/format.h>

#include "export/measures/read.h"  // PointerToken
#include "linalg/base/check.h"

namespace oscar {

bool Record::Has(std::string_view key) const {
  return value_.is_object() && FindMember(value_, key).has_value();
}

Record Record::operator[](std::string_view key) const {
  const auto member = FindMember(value_, key);
  OSCAR_CHECK(member.has_value());
  return Member(member->key, member->value);
}

Record Record::operator[](size_t index) const {
  OSCAR_CHECK_LT(index, size());
  return Element(index, ElementsOf(value_).at(index).value());
}

std::optional<Record> Record::Find(std::string_view path) const {
  const std::string_view key = path.substr(0, path.find('.'));
  if (!Has(key)) return std::nullopt;
  const Record below = (*this)[key];
  return key == path ? below : below.Find(path.substr(key.size() + 1));
}

size_t Record::size() const {
  return value_.is_array() ? ElementsOf(value_).size() : MembersOf(value_).size();
}

Record Record::Below(const JsonElement& value, Step step) const {
  Record below = *this;
  below.value_ = value;
  if (num_steps_ == steps_.size()) {
    below.prefix_ = pointer();
    below.num_steps_ = 0;
  }
  below.steps_[below.num_steps_++] = step;
  return below;
}

std::string Record::pointer() const {
  std::string pointer = prefix_;
  pointer.reserve(64);
  for (size_t i = 0; i < num_steps_; ++i) {
    const Step& step = steps_[i];
    pointer += '/';
    if (step.key == nullptr) {
      const fmt::format_int index(step.size);
      pointer.append(index.data(), index.size());
      continue;
    }
    const std::string_view key(step.key, step.size);
    const bool plain = key.find('~') == key.npos && key.find('/') == key.npos;
    plain ? pointer += key : pointer += measures::PointerToken(key);
  }
  return pointer;
}

std::vector<Record> Record::Items() const {
  std::vector<Record> items;
  items.reserve(size());
  for (const JsonElement element : ElementsOf(value_))
    items.push_back(Element(items.size(), element));
  return items;
}

std::vector<std::pair<std::string, Record>> Record::Members() const {
  std::vector<std::pair<std::string, Record>> members;
  if (!value_.is_object()) return members;
  for (const auto& [key, value] : MembersOf(value_)) members.emplace_back(key, Member(key, value));
  return members;
}

std::string Record::Text() const {
  switch (value_.type()) {
    case JsonType::STRING:
      return std::string(value_.get_string().value_unsafe());
    case JsonType::INT64:
      return fmt::format_int(value_.get_int64().value_unsafe()).str();
    case JsonType::DOUBLE: {  // printed like dump(), which reserves space for any document first
      std::array<char, 64> text;
      return {text.data(), nlohmann::detail::to_chars(text.begin(), text.end(), Number())};
    }
    default:
      return simdjson::minify(value_);
  }
}

std::string Record::TextOr(std::string_view key, std::string_view fallback) const {
  return IsText(key) ? (*this)[key].Text() : std::string(fallback);
}

bool Record::IsText(std::string_view key) const {
  return Has(key) && (*this)[key].IsString() && !(*this)[key].Text().empty();
}

bool Record::IsNumber(std::string_view key) const {
  return Has(key) && (*this)[key].value_.is_number();
}

}  // namespace oscar
