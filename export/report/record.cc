// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/record.h"

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
  return value_->is_object() && value_->contains(std::string(key));
}

Record Record::operator[](std::string_view key) const {
  OSCAR_CHECK(Has(key));
  return {value_->at(std::string(key)), pointer_ + "/" + PointerToken(key)};
}

Record Record::operator[](size_t index) const {
  OSCAR_CHECK_LT(index, value_->size());
  return {value_->at(index), pointer_ + "/" + std::to_string(index)};
}

std::vector<Record> Record::Items() const {
  std::vector<Record> items;
  for (size_t i = 0; i < value_->size(); ++i) items.push_back((*this)[i]);
  return items;
}

std::vector<std::pair<std::string, Record>> Record::Members() const {
  std::vector<std::pair<std::string, Record>> members;
  if (!value_->is_object()) return members;
  for (const auto& [key, value] : value_->items()) members.emplace_back(key, (*this)[key]);
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
