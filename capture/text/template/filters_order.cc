// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters that order or compare items: sort, dictsort, unique, min, max, groupby. Trap: they take
// upper and lower case for equal unless case_sensitive is given, and keep the order of equal items.
#include <fmt/format.h>

#include <algorithm>

#include "capture/text/template/compare.h"
#include "capture/text/template/objects.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/string_ops.h"
#include "capture/text/template/tables.h"
#include "capture/text/template/unicode.h"

namespace oscar::jinja {
namespace {

struct Keyed {
  Value key, item;
};

// What items are compared by.
class KeyReader {
 public:
  KeyReader(const std::optional<Value>& attribute, bool case_sensitive,
            std::optional<Value> fallback = {})
      : case_sensitive_(case_sensitive), fallback_(std::move(fallback)) {
    if (!attribute || attribute->is_none()) return;
    path_.emplace(*attribute);
  }
  Value Read(Session& session, const Value& item) const {
    Value key = path_ ? path_->Read(session, item, fallback_) : item;
    return case_sensitive_ ? key : IgnoreCase(session, key);
  }

 private:
  bool case_sensitive_;
  std::optional<Value> fallback_;
  std::optional<AttributePath> path_;
};

bool Flag(Session& session, const std::optional<Value>& value) {
  return value && value->Truthy(session);
}

void SortKeyed(Session& session, std::vector<Keyed>& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? Less(session, b.key, a.key) : Less(session, a.key, b.key);
  });
}

std::vector<Value> Items(std::vector<Keyed> keyed) {
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return items;
}

Value SortFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("sort", {"reverse", "case_sensitive", "attribute"}, 0);
  const bool case_sensitive = Flag(session, bound[1]);
  // attribute="a,b" sorts by a, then by b.
  std::vector<KeyReader> readers;
  if (bound[2] && bound[2]->is_string()) {
    for (const std::string_view part : SplitAt(bound[2]->as_string(), ",", -1, false))
      readers.emplace_back(Value::String(std::string(part)), case_sensitive);
  } else {
    readers.emplace_back(bound[2], case_sensitive);
  }
  std::vector<Keyed> keyed;
  for (const Value& item : ToVector(session, value)) {
    std::vector<Value> key;
    for (const KeyReader& reader : readers) key.push_back(reader.Read(session, item));
    keyed.push_back({Value::List(std::move(key)), item});
  }
  SortKeyed(session, keyed, Flag(session, bound[0]));
  return Value::List(Items(std::move(keyed)));
}

Value DictSortFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("dictsort", {"case_sensitive", "by", "reverse"}, 0);
  const std::string by = bound[1] ? StringArgument(*bound[1], "dictsort") : std::string("key");
  if (by != "key" && by != "value")
    throw TemplateFailure("You can only sort by either \"key\" or \"value\"");
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (!value.is_dict()) {
    throw TemplateFailure(fmt::format("'{}' object has no attribute 'items'", value.TypeName()));
  }
  const bool case_sensitive = Flag(session, bound[0]);
  std::vector<Keyed> keyed;
  for (const auto& [key, item] : value.dict().items) {
    session.Step();
    const Value& compared = by == "key" ? key : item;
    keyed.push_back(
        {case_sensitive ? compared : IgnoreCase(session, compared), Value::Tuple({key, item})});
  }
  SortKeyed(session, keyed, Flag(session, bound[2]));
  return Value::List(Items(std::move(keyed)));
}

Value UniqueFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("unique", {"case_sensitive", "attribute"}, 0);
  const KeyReader reader(bound[1], Flag(session, bound[0]));
  Dict seen;
  std::vector<Value> items;
  for (const Value& item : ToVector(session, value)) {
    const Value key = reader.Read(session, item);
    if (seen.Find(key) != nullptr) continue;
    seen.Set(key, Value::None());
    items.push_back(item);
  }
  const int depth = Value::List(items).depth();
  return Value::Of(std::make_shared<Generator>(
      [items = std::move(items), i = size_t{0}](Value* item) mutable {
        if (i == items.size()) return false;
        *item = items[i++];
        return true;
      },
      depth));
}

template <bool kMax>
Value Extreme(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("min or max", {"case_sensitive", "attribute"}, 0);
  const KeyReader reader(bound[1], Flag(session, bound[0]));
  std::optional<Keyed> best;
  const Cursor cursor = Iterate(session, value);
  for (Value item; cursor(&item);) {
    Keyed entry{reader.Read(session, item), item};
    if (!best || (kMax ? Compare(session, entry.key, best->key, ">") == 1
                       : Less(session, entry.key, best->key))) {
      best = std::move(entry);
    }
  }
  return best ? best->item : Value::Undefined("No aggregated item, sequence was empty.");
}

Value GroupByFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("groupby", {"attribute", "default", "case_sensitive"}, 1);
  std::optional<Value> fallback;
  if (bound[1] && !bound[1]->is_none()) fallback = bound[1];
  const KeyReader compared(bound[0], Flag(session, bound[2]), fallback);
  const KeyReader shown(bound[0], true, fallback);
  std::vector<Keyed> keyed;
  for (const Value& item : ToVector(session, value))
    keyed.push_back({compared.Read(session, item), item});
  SortKeyed(session, keyed, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < keyed.size();) {
    size_t end = begin;
    std::vector<Value> items;
    while (end < keyed.size() && Equal(session, keyed[end].key, keyed[begin].key))
      items.push_back(keyed[end++].item);
    if (end == begin) ++end;  // NaN is not equal to itself
    groups.push_back(
        Value::GroupTuple(shown.Read(session, keyed[begin].item), Value::List(std::move(items))));
    begin = end;
  }
  return Value::List(std::move(groups));
}

}  // namespace

Value IgnoreCase(Session& session, const Value& value) {
  if (!value.is_string()) return value;
  return session.String(EncodeUtf8(Lower(DecodeUtf8(value.as_string()))), value.is_markup());
}

std::span<const FilterRow> OrderFilters() {
  static constexpr FilterRow kFilters[] = {
      {"sort", SortFilter},    {"dictsort", DictSortFilter}, {"unique", UniqueFilter},
      {"min", Extreme<false>}, {"max", Extreme<true>},       {"groupby", GroupByFilter},
  };
  return kFilters;
}

}  // namespace oscar::jinja
