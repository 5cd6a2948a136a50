// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Typed access to the fields of a quantization_config.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/object_fields.h"

namespace oscar {

class QuantizationFields final : public ObjectFields {
 public:
  using ObjectFields::ObjectFields;

  int64_t Int(std::string_view key, int64_t fallback);     // within ±2^31
  std::vector<std::string> Strings(std::string_view key);  // empty if missing

  // Marks fields as read that cannot change a weight.
  void Ignore(std::initializer_list<std::string_view> keys);
  // Throws FieldError unless the field is missing, null, empty ({}, [], "") or false. `effect`
  // names what the field would add, such as "zero points", for the error.
  void Refuse(std::string_view key, std::string_view effect);

  std::vector<std::string> Unread() const;
};

}  // namespace oscar
