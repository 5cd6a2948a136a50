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
  return Below(*member, {.key = &member.key()}, true);
}

Record Record::operator[](size_t index) const {
  OSCAR_CHECK_LT(index, value_->size());
  return Below((*value_)[index], {.index = index}, false);
}

Record Record::Below(const Json& value, Step step, bool is_key) const {
  Record below = *this;
  below.value_ = &value;
  if (num_steps_ == steps_.size()) {
    below.prefix_ = pointer();
    below.num_steps_ = below.keys_ = 0;
  }
  below.keys_ |= uint32_t{is_key} << below.num_steps_;
  below.steps_[below.num_steps_++] = step;
  return below;
}

std::string Record::pointer() const {
  std::string pointer = prefix_;
  pointer.reserve(64);
  for (size_t i = 0; i < num_steps_; ++i) {
    const Step& step = steps_[i];
    pointer += '/';
    if ((keys_ >> i & 1) == 0) {
      const fmt::format_int index(step.index);
      pointer.append(index.data(), index.size());
    } else if (step.key->find_first_of("~/") == std::string::npos) {
      pointer += *step.key;
    } else {
      pointer += PointerToken(*step.key);
    }
  }
  return pointer;
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
    members.emplace_back(key, Below(value, {.key = &key}, true));
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
