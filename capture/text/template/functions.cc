// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls, and the functions that every template can call: Jinja's range, dict and namespace, and
// transformers' raise_exception and strftime_now. Trap: strftime_now returns the time of the
// session, not the machine's, so that equal runs give equal text.
#include "capture/text/template/functions.h"

#include <fmt/format.h>
#include <locale.h>
#include <time.h>

#include <ctime>

#include "capture/text/template/operators.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // same as in Jinja2's sandbox
constexpr size_t kMaxTimeFormatBytes = 1000;

Value Range(const Call& c) {
  const std::vector<Value>& given = c.given.positional;
  if (given.empty() || given.size() > 3 || !c.given.named.empty())
    throw TemplateFailure("range expected 1 to 3 arguments");
  const auto at = [&](size_t i) { return IntegerOf(given[i], "range()"); };
  const int64_t start = given.size() > 1 ? at(0) : 0;
  const int64_t stop = given.size() > 1 ? at(1) : at(0);
  const int64_t step = given.size() > 2 ? at(2) : 1;
  if (step == 0) throw TemplateFailure("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) == kMaxRange) {
      throw TemplateFailure(fmt::format(
          "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange));
    }
    c.session.ChargeItems(1);
    items.push_back(Value::Int(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value::List(std::move(items), SequenceKind::kRange);
}

// Evaluates dict(mapping or pairs, name=value, ...).
Dict DictOf(const Call& c) {
  Dict dict;
  if (c.given.positional.size() > 1) {
    throw TemplateFailure(
        fmt::format("{} expected at most 1 argument, got {}", c.name, c.given.positional.size()));
  }
  for (const Value& source : c.given.positional) {
    for (const Value& item : ToVector(c.session, source)) {
      const std::vector<Value> pair = source.is_dict()
                                          ? std::vector{item, *source.dict().Find(item)}
                                          : ToVector(c.session, item);
      if (pair.size() != 2) throw TemplateFailure("dictionary update sequence needs pairs");
      ChargeKey(c.session, pair[0]);
      dict.Set(pair[0], pair[1]);
    }
  }
  for (const auto& [name, value] : c.given.named) dict.Set(Value::String(name), value);
  return dict;
}

Value MakeNamespace(const Call& c) {
  c.session.ChargeItems(4);
  const auto space = std::make_shared<Namespace>();
  space->attributes = DictOf(c);
  c.session.AtEnd([space] { space->attributes = {}; });
  return Value::Of(space);
}

Value RaiseException(const Call& c) { throw TemplateFailure(Str(c.session, *c.bound[0])); }

Value StrftimeNow(const Call& c) {
  const std::string& given = c.Text(0);
  if (given.size() > kMaxTimeFormatBytes) {
    throw TemplateFailure(fmt::format("strftime_now: the format has {} bytes, expected at most {}",
                                      given.size(), kMaxTimeFormatBytes));
  }
  c.session.time_was_read = true;
  // The appended dot distinguishes an empty result from one that does not fit.
  const std::string format = given + '.';
  if (given.find('\0') != given.npos)
    throw TemplateFailure("strftime_now: embedded null character");
  for (size_t i = 0; (i = given.find('%', i)) != given.npos;) {
    // Flags, width and modifier are parsed as in glibc; then comes the conversion.
    const size_t code = given.find_first_not_of("_-0^#+:EO123456789", i + 1);
    if (code == given.npos) break;
    // There are no microseconds and no time zone, hence no time since an epoch.
    if (std::string_view("fzZs").find(given[code]) != std::string_view::npos)
      throw TemplateFailure(NotSupported("strftime_now code", given.substr(i, code + 1 - i)));
    i = code + 1;
  }
  const CivilTime& now = c.session.now;
  std::tm time{};
  time.tm_year = now.year - 1900;
  time.tm_mon = now.month - 1;
  time.tm_mday = now.day;
  time.tm_hour = now.hour;
  time.tm_min = now.minute;
  time.tm_sec = now.second;
  std::tm utc = time;
  const time_t seconds = timegm(&utc);  // computes the day of the week and of the year
  gmtime_r(&seconds, &utc);
  time.tm_wday = utc.tm_wday;
  time.tm_yday = utc.tm_yday;
  time.tm_isdst = -1;
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  std::string out(256 + format.size() * 32, '\0');
  const size_t size = strftime_l(out.data(), out.size(), format.c_str(), &time, c_locale);
  if (size == 0)
    throw TemplateFailure("strftime_now: the format " + StringRepr(given) +
                          " makes a text that is too long");
  out.resize(size - 1);
  return c.session.String(std::move(out));
}

constexpr FunctionRow<Value> kGlobals[] = {
    {"dict", [](const Call& c) { return Value::FromDict(DictOf(c)); }, "*"},
    {"namespace", MakeNamespace, "*"},
    {"raise_exception", RaiseException, "message", 1},
    {"range", Range, "*"},
    {"strftime_now", StrftimeNow, "format", 1},
};
constexpr std::string_view kRefusedFunctions[] = {"cycler", "joiner", "lipsum"};

}  // namespace

const std::string& Call::Text(size_t i) const { return TextOf(*bound[i], name); }

int64_t Call::Integer(size_t i, int64_t fallback) const {
  return bound[i] ? IntegerOf(*bound[i], name) : fallback;
}

Call Bind(Session& session, std::string_view name, const Value& self, const Arguments& given,
          std::string_view parameters, size_t required) {
  Call call{session, name, self, given, {}};
  if (parameters == "*") return call;
  std::vector<std::string_view> names;
  while (!parameters.empty()) {
    names.push_back(parameters.substr(0, parameters.find(' ')));
    parameters.remove_prefix(std::min(names.back().size() + 1, parameters.size()));
  }
  if (given.positional.size() > names.size()) {
    throw TemplateFailure(fmt::format("{}() takes at most {} arguments, {} are given", name,
                                      names.size(), given.positional.size()));
  }
  call.bound.assign(given.positional.begin(), given.positional.end());
  call.bound.resize(names.size());
  for (const auto& [key, value] : given.named) {
    const auto found = std::ranges::find_if(names, [&, &key = key](std::string_view known) {
      return known == key || known == "-" + key;
    });
    if (found == names.end()) {
      throw TemplateFailure(fmt::format("{}() got an unexpected keyword argument '{}'", name, key));
    }
    std::optional<Value>& slot = call.bound[static_cast<size_t>(found - names.begin())];
    if (slot)
      throw TemplateFailure(fmt::format("{}() got multiple values for argument '{}'", name, key));
    slot = value;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (call.bound[i] && names[i].starts_with('-'))
      throw TemplateFailure(NotSupported(fmt::format("{}() argument", name), names[i].substr(1)));
    if (!call.bound[i] && i < required)
      throw TemplateFailure(fmt::format("{}() is missing its argument '{}'", name, names[i]));
  }
  return call;
}

const std::string* StripSet(const Call& c, std::string_view text) {
  if (!c.Has(0)) return nullptr;
  c.session.ChargeWide(c.Text(0).size());
  c.session.Step(1 + text.size() / Session::kBytesPerStep * (1 + c.Text(0).size()));
  return &c.Text(0);
}

void ChargeKey(Session& session, const Value& key) {
  session.ChargeMemory(Session::kItemBytes + (key.is_string() ? key.as_string().size() : 0));
}

std::optional<Value> FindGlobal(std::string_view name) {
  if (std::ranges::find(kRefusedFunctions, name) != std::end(kRefusedFunctions))
    throw TemplateFailure(NotSupported("function", name));
  const auto* row = FindRow<Value>(kGlobals, name);
  if (row == nullptr) return std::nullopt;
  return Value::Of(std::make_shared<Function>([row](Session& session, const Arguments& arguments) {
    return Invoke(*row, session, Value::None(), arguments);
  }));
}

}  // namespace oscar::jinja
