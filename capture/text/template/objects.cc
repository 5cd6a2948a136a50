// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/objects.h"

#include <fmt/format.h>

#include "capture/text/template/operators.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {

Range::Range(int64_t start, int64_t stop, int64_t step)
    : start_(start), stop_(stop), step_(step), length_(0) {
  if (step == 0) throw TemplateFailure("range() arg 3 must not be zero");
  const bool empty = step > 0 ? start >= stop : start <= stop;
  if (empty) return;
  const uint64_t span = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                 : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  const uint64_t length = (span - 1) / stride + 1;
  if (length > static_cast<uint64_t>(kMaxLength)) {
    throw TemplateFailure(fmt::format(
        "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxLength));
  }
  length_ = static_cast<int64_t>(length);
}

std::string Range::Repr(Session&) const {
  if (step_ == 1) return fmt::format("range({}, {})", start_, stop_);
  return fmt::format("range({}, {}, {})", start_, stop_, step_);
}

std::optional<Cursor> Range::Iterate(Session& session) {
  return [&session, i = int64_t{0}, n = length_, start = start_, step = step_](Value* out) mutable {
    session.Step();
    if (i == n) return false;
    *out = Value::Int(start + i++ * step);
    return true;
  };
}

std::optional<Value> Range::Attribute(Session& session, std::string_view name) {
  if (name == "start") return Value::Int(start_);
  if (name == "stop") return Value::Int(stop_);
  if (name == "step") return Value::Int(step_);
  if (name != "count" && name != "index") return std::nullopt;
  return GetAttribute(
      session, Value::List(ToVector(session, Value::Of(std::make_shared<Range>(*this)))), name);
}

std::optional<Value> Range::Item(Session&, const Value& index) {
  if (!index.is_integral()) return std::nullopt;
  int64_t i = index.as_int();
  if (i < 0) i += length_;
  if (i < 0 || i >= length_) return std::nullopt;
  return Value::Int(start_ + i * step_);
}

std::string DictView::TypeName() const {
  switch (part_) {
    case Part::kItems:
      return "dict_items";
    case Part::kKeys:
      return "dict_keys";
    case Part::kValues:
      break;
  }
  return "dict_values";
}

Value DictView::At(size_t i) const {
  const auto& [key, value] = dict_.dict().items[i];
  if (part_ == Part::kKeys) return key;
  return part_ == Part::kValues ? value : Value::Tuple({key, value});
}

std::string DictView::Repr(Session& session) const {
  std::vector<Value> items;
  for (size_t i = 0; i < dict_.dict().items.size(); ++i) items.push_back(At(i));
  return fmt::format("{}({})", TypeName(), jinja::Repr(session, Value::List(std::move(items))));
}

std::optional<Cursor> DictView::Iterate(Session& session) {
  return [&session, view = *this, i = size_t{0}](Value* out) mutable {
    session.Step();
    if (i == view.dict_.dict().items.size()) return false;
    *out = view.At(i++);
    return true;
  };
}

std::optional<int64_t> DictView::Length(Session&) {
  return static_cast<int64_t>(dict_.dict().items.size());
}

Generator::Generator(Cursor next, int depth)
    : next_(std::make_shared<Cursor>(std::move(next))), depth_(depth + 1) {
  if (depth_ > Value::kMaxDepth) {
    throw TemplateFailure(fmt::format(
        "filters that read from each other are nested deeper than {} levels", Value::kMaxDepth));
  }
}

std::optional<Cursor> Generator::Iterate(Session&) {
  return [next = next_](Value* out) { return (*next)(out); };
}

std::string Namespace::Repr(Session& session) const {
  std::string out = "<Namespace {";
  for (const auto& [key, value] : attributes.items) {
    if (out.back() != '{') out += ", ";
    out += jinja::Repr(session, key) + ": " + jinja::Repr(session, value);
  }
  return out + "}>";
}

std::optional<Value> Namespace::Attribute(Session&, std::string_view name) {
  const Value* found = attributes.Find(name);
  if (found == nullptr) return std::nullopt;
  return *found;
}

std::optional<Value> Cycler::Attribute(Session&, std::string_view name) {
  if (name == "current") return items_[*position_];
  if (name == "next") {
    return Value::Of(std::make_shared<Function>(
        [items = items_, position = position_](Session&, const Arguments&) {
          const Value item = items[*position];
          *position = (*position + 1) % items.size();
          return item;
        }));
  }
  if (name == "reset") {
    return Value::Of(std::make_shared<Function>([position = position_](Session&, const Arguments&) {
      *position = 0;
      return Value::None();
    }));
  }
  return std::nullopt;
}

Value Joiner::Call(Session&, Arguments& arguments) {
  arguments.Bind("joiner", {}, 0);
  if (used_) return separator_;
  used_ = true;
  return Value::String("");
}

}  // namespace oscar::jinja
