// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "capture/files/utf8.h"
#include "capture/text/template/format.h"
#include "capture/text/template/format_spec.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/unicode.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(Session& session, const Value& format, const Value& arguments)
      : session_(session),
        format_(format.as_string()),
        markup_(format.is_markup()),
        arguments_(arguments) {}

  Value Run() {
    std::string out;
    while (at_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', at_), format_.size());
      out += format_.substr(at_, percent - at_);
      at_ = percent;
      if (at_ == format_.size()) break;
      ++at_;
      const std::string text = Conversion();
      session_.ChargeText(text.size());
      out += text;
      if (out.size() > Session::kMaxTextBytes) session_.ChargeText(out.size());
    }
    CheckAllUsed();
    return session_.String(std::move(out), markup_);
  }

 private:
  char Peek() const {
    if (at_ == format_.size()) throw TemplateFailure("incomplete format");
    return format_[at_];
  }

  Value Take() {
    if (!arguments_.is_tuple()) {
      if (used_++ == 0) return arguments_;
    } else if (used_ < arguments_.items().size()) {
      return arguments_.items()[used_++];
    }
    throw TemplateFailure("not enough arguments for format string");
  }

  // %(name)s
  std::optional<Value> Named() {
    if (Peek() != '(') return std::nullopt;
    const size_t end = format_.find(')', at_);
    if (end == format_.npos) throw TemplateFailure("incomplete format key");
    if (!arguments_.is_dict()) throw TemplateFailure("format requires a mapping");
    const std::string_view key = format_.substr(at_ + 1, end - at_ - 1);
    const Value* found = arguments_.dict().Find(key);
    if (found == nullptr) throw TemplateFailure(fmt::format("KeyError: '{}'", key));
    at_ = end + 1;
    return *found;
  }

  void Flags(FormatSpec& spec) {
    for (;; ++at_) {
      const char flag = Peek();
      if (flag == '-') {
        spec.align = '<';
      } else if (flag == '+' || (flag == ' ' && spec.sign != '+')) {
        spec.sign = flag;
      } else if (flag == '#') {
        spec.alternate = true;
      } else if (flag == '0') {
        spec.zero = true;
      } else if (flag != ' ') {
        return;
      }
    }
  }

  int Number() {
    if (Peek() != '*') return ParseFormatNumber(format_, at_);
    ++at_;
    const int64_t given = IntegerOf(Take(), "* wants int");
    if (given > kMaxFormatWidth) throw TemplateFailure("a width is too large in a format");
    return static_cast<int>(std::max<int64_t>(given, -kMaxFormatWidth));
  }

  std::string Conversion() {
    if (Peek() == '%') {
      ++at_;
      return "%";
    }
    std::optional<Value> value = Named();
    FormatSpec spec;
    Flags(spec);
    spec.width = Number();
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (Peek() == '.') {
      ++at_;
      spec.precision = std::max(Number(), 0);
    }
    const char type = Peek();
    ++at_;
    if (!value) value = Take();
    switch (type) {
      case 's':
      case 'r':
      case 'a':
        return Text(spec, *value, type == 's');
      case 'c':
        return Character(spec, *value);
      case 'd':
      case 'i':
      case 'u':
        return Decimal(spec, *value);
      default:
        return Real(spec, *value, type);
    }
  }

  std::string Text(FormatSpec& spec, const Value& value, bool as_str) const {
    if (spec.align == '\0') spec.align = '>';
    std::string text = as_str ? Str(session_, value) : Repr(session_, value);
    if (markup_ && !value.is_markup()) text = EscapeHtml(text);
    return FormatText(spec, std::move(text));
  }

  static std::string Character(FormatSpec& spec, const Value& value) {
    std::string text = value.is_string() ? value.as_string() : std::string();
    if (value.is_integral() && value.as_int() >= 0 && value.as_int() <= 0x10FFFF &&
        (value.as_int() < 0xD800 || value.as_int() > 0xDFFF)) {
      AppendUtf8(static_cast<char32_t>(value.as_int()), text);
    }
    if (CodePointCount(text) != 1) throw TemplateFailure("%c requires int or char");
    if (spec.align == '\0') spec.align = '>';
    return FormatText(spec, std::move(text));
  }

  static void CheckNumber(const Value& value, char type) {
    if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
    if (value.is_number()) return;
    throw TemplateFailure(
        fmt::format("%{} format: a real number is required, not {}", type, value.TypeName()));
  }

  static std::string Decimal(FormatSpec& spec, Value value) {
    CheckNumber(value, 'd');
    spec.type = 'd';
    if (value.is_float()) {
      if (!std::isfinite(value.as_double()) || std::abs(value.as_double()) > 9.2e18)
        throw TemplateFailure("cannot convert this float to an integer");
      value = Value::Int(static_cast<int64_t>(value.as_double()));
    }
    if (spec.precision <= 0) return FormatNumber(spec, value);
    // A precision asks for that many digits at least.
    FormatSpec plain;
    plain.sign = spec.sign;
    std::string digits = FormatNumber(plain, value);
    const size_t sign = digits[0] >= '0' && digits[0] <= '9' ? 0 : 1;
    const auto least = static_cast<size_t>(spec.precision) + sign;
    if (digits.size() < least) digits.insert(sign, least - digits.size(), '0');
    return PadFormatted(spec, "", std::move(digits), '>');
  }

  static std::string Real(FormatSpec& spec, const Value& value, char type) {
    if (std::string_view("xXoeEfFgG").find(type) == std::string_view::npos)
      throw TemplateFailure(fmt::format("unsupported format character '{}'", type));
    CheckNumber(value, type);
    if (std::string_view("xXo").find(type) != std::string_view::npos && value.is_float())
      throw TemplateFailure(fmt::format("%{} format: an integer is required, not float", type));
    spec.type = type;
    return FormatNumber(spec, value);
  }

  void CheckAllUsed() const {
    // Whatever Python could take for a mapping may have more than the format uses.
    const bool has_items = arguments_.is_dict() || arguments_.is_list() ||
                           arguments_.is_undefined() ||
                           (arguments_.is_object() && arguments_.object().is_sequence());
    if (has_items) return;
    const size_t given = arguments_.is_tuple() ? arguments_.items().size() : 1;
    if (used_ < given)
      throw TemplateFailure("not all arguments converted during string formatting");
  }

  Session& session_;
  std::string_view format_;
  bool markup_;
  const Value& arguments_;
  size_t at_ = 0;
  size_t used_ = 0;  // arguments taken by position
};

}  // namespace

Value PercentFormat(Session& session, const Value& format, const Value& arguments) {
  return PercentFormatter(session, format, arguments).Run();
}

}  // namespace oscar::jinja
