// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions every template can call: Jinja's range, dict, namespace, cycler and joiner, and
// raise_exception and strftime_now of transformers. Trap: the time is the session's, never the
// machine's, so that two runs agree.
#include <fmt/format.h>
#include <locale.h>
#include <time.h>

#include <algorithm>
#include <ctime>

#include "capture/text/template/interpreter.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/string_ops.h"
#include "capture/text/template/tables.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

Value RangeOf(Session&, const Arguments& arguments) {
  const std::vector<Value>& given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.named.empty())
    throw TemplateFailure("range expected 1 to 3 arguments");
  const int64_t first = IntegerOf(given[0], "range()");
  const int64_t stop = given.size() > 1 ? IntegerOf(given[1], "range()") : first;
  const int64_t step = given.size() > 2 ? IntegerOf(given[2], "range()") : 1;
  return Value::Of(std::make_shared<Range>(given.size() > 1 ? first : 0, stop, step));
}

// dict(mapping or pairs, name=value, ...)
Dict DictOf(Session& session, const Arguments& arguments) {
  Dict dict;
  if (arguments.positional.size() > 1) {
    throw TemplateFailure(
        fmt::format("dict expected at most 1 argument, got {}", arguments.positional.size()));
  }
  for (const Value& source : arguments.positional) {
    if (source.is_dict()) {
      session.Step(source.dict().items.size());
      for (const auto& [key, value] : source.dict().items) dict.Set(key, value);
      continue;
    }
    for (const Value& pair : ToVector(session, source)) {
      const std::vector<Value> parts = ToVector(session, pair);
      if (parts.size() != 2) throw TemplateFailure("dictionary update sequence needs pairs");
      dict.Set(parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) dict.Set(Value::String(name), value);
  return dict;
}

Value StrftimeNow(Session& session, const Arguments& arguments) {
  const auto bound = arguments.Bind("strftime_now", {"format"}, 1);
  session.time_was_read = true;
  // Python answers these itself: no microseconds and no time zone here.
  const std::string& given = StringArgument(*bound[0], "strftime_now()");
  std::string format;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '%' || i + 1 == given.size()) {
      format += given[i];
      continue;
    }
    const char kind = given[++i];
    if (kind == 'z' || kind == 'Z') continue;
    format += kind == 'f' ? std::string("000000") : std::string("%") + kind;
  }
  const CivilTime& now = session.now;
  std::tm time{};
  time.tm_year = now.year - 1900;
  time.tm_mon = now.month - 1;
  time.tm_mday = now.day;
  time.tm_hour = now.hour;
  time.tm_min = now.minute;
  time.tm_sec = now.second;
  time.tm_isdst = -1;
  std::tm utc = time;
  const time_t seconds = timegm(&utc);  // for the day of the week and of the year
  gmtime_r(&seconds, &utc);
  time.tm_wday = utc.tm_wday;
  time.tm_yday = utc.tm_yday;
  std::string out(256 + format.size() * 32, '\0');
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  const size_t size = strftime_l(out.data(), out.size(), format.c_str(), &time, c_locale);
  if (size == 0 && !format.empty() && format.find_first_not_of(' ') != format.npos &&
      format != "%p") {
    throw TemplateFailure(
        fmt::format("strftime_now: the format {} gives too long a text", StringRepr(given)));
  }
  out.resize(size);
  return session.String(std::move(out));
}

Value FunctionOf(Function::Body body) {
  return Value::Of(std::make_shared<Function>(std::move(body)));
}

}  // namespace

std::optional<Value> Global(Interpreter& interpreter, std::string_view name) {
  if (name == "range") return FunctionOf(RangeOf);
  if (name == "strftime_now") return FunctionOf(StrftimeNow);
  if (name == "raise_exception") {
    return FunctionOf([](Session& session, const Arguments& arguments) -> Value {
      const auto bound = arguments.Bind("raise_exception", {"message"}, 1);
      throw TemplateFailure(Str(session, *bound[0]));
    });
  }
  if (name == "dict") {
    return FunctionOf([](Session& session, const Arguments& arguments) {
      return Value::FromDict(DictOf(session, arguments));
    });
  }
  if (name == "namespace") {
    return FunctionOf([&interpreter](Session& session, const Arguments& arguments) {
      const auto space = interpreter.MakeNamespace();
      space->attributes = DictOf(session, arguments);
      return Value::Of(space);
    });
  }
  if (name == "cycler") {
    return FunctionOf([](Session&, const Arguments& arguments) {
      if (arguments.positional.empty())
        throw TemplateFailure("at least one item has to be provided");
      return Value::Of(std::make_shared<Cycler>(arguments.positional));
    });
  }
  if (name == "joiner") {
    return FunctionOf([](Session&, const Arguments& arguments) {
      const auto bound = arguments.Bind("joiner", {"sep"}, 0);
      return Value::Of(std::make_shared<Joiner>(bound[0].value_or(Value::String(", "))));
    });
  }
  if (name == "lipsum") {
    return FunctionOf([](Session&, const Arguments&) -> Value {
      throw TemplateFailure("lipsum() is not supported: it is random");
    });
  }
  return std::nullopt;
}

}  // namespace oscar::jinja
