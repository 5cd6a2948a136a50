// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/record.h"

#include <fmt/format.h>

#include "linalg/check.h"

namespace oscar {

std::string PointerToken(std::string_view key) {
  std::string token;
  for (char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

bool Record::Has(std::string_view key) const {
  return value_->is_object() && value_->contains(key);
}

Record Record::operator[](std::string_view key) const {
  OSCAR_CHECK(value_->is_object());
  const auto member = value_->find(key);
  OSCAR_CHECK(member != value_->end());
  return Below(*member, key.find_first_of("~/") == key.npos ? key : PointerToken(key));
}

Record Record::operator[](size_t index) const {
  OSCAR_CHECK_LT(index, value_->size());
  return Below((*value_)[index], fmt::format_int(index).str());
}

Record Record::Below(const Json& value, std::string_view token) const {
  std::string pointer;
  pointer.reserve(pointer_.size() + 1 + token.size());
  return {value, std::move(pointer.append(pointer_).append(1, '/').append(token))};
}

std::vector<Record> Record::Items() const {
  std::vector<Record> items;
  items.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) items.push_back((*this)[i]);
  return items;
}

std::vector<std::pair<std::string, Record>> Record::Members() const {
  std::vector<std::pair<std::string, Record>> members;
  if (!value_->is_object()) return members;
  for (const auto& [key, value] : value_->get_ref<const Json::object_t&>())
    members.emplace_back(key, (*this)[key]);
  return members;
}

std::string Record::Text() const {
  return value_->is_string() ? value_->get<std::string>() : value_->dump();
}

std::string Record::TextOr(std::string_view key, std::string_view fallback) const {
  return IsText(key) ? (*this)[key].Text() : std::string(fallback);
}

bool Record::IsText(std::string_view key) const {
  return Has(key) && (*this)[key].json().is_string() && !(*this)[key].json().empty() &&
         !(*this)[key].Text().empty();
}

bool Record::IsNumber(std::string_view key) const {
  return Has(key) && (*this)[key].json().is_number();
}

}  // namespace oscar
