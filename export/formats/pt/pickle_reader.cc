// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The stack machine of pickle, reduced to data. A container may change only until another object
// refers to it; picklers fill a container right after making it. So there are no cycles, and a
// value's depth and expanded size are final when it is first used.
#include "export/formats/pt/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "export/formats/pt/pickle_format.h"
#include "export/formats/pt/pickle_object.h"
#include "export/formats/pt/zip_format.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using namespace pickle;  // NOLINT(build/namespaces): opcodes and limits of the dialect

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  PickleResult Run() {
    if (bytes_.size() > kMaxBytes) Fail(fmt::format("the pickle has {} bytes", bytes_.size()));
    if (Byte() != kProto || Byte() != kProtocol) Fail("expected pickle protocol 2");
    while (!done_) Step(Byte());
    if (at_ != bytes_.size()) Fail("bytes after the end of the pickle");
    return std::move(result_);
  }

 private:
  [[noreturn]] void Fail(std::string_view why) const {
    throw InputError(
        fmt::format("{}: pickle refused at byte {}: {}. Only plain dicts, lists, numbers, strings "
                    "and tensors written by torch.save(object, path) are read",
                    what_, at_, why));
  }

  std::span<const std::byte> Take(uint64_t size) {
    if (size > bytes_.size() - at_) Fail("truncated");
    const auto taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }
  unsigned char Byte() { return static_cast<unsigned char>(Take(1)[0]); }
  template <typename T>
  T Number() {
    return zip::Load<T>(Take(sizeof(T)), 0);
  }
  std::string_view Line() {
    const auto rest = bytes_.subspan(at_, std::min<size_t>(bytes_.size() - at_, 256));
    const auto end = std::find(rest.begin(), rest.end(), std::byte{'\n'});
    if (end == rest.end()) Fail("unterminated name");
    const auto taken = Take(static_cast<uint64_t>(end - rest.begin()) + 1);
    return {reinterpret_cast<const char*>(taken.data()), taken.size() - 1};
  }

  Object* NewObject() {
    if (objects_.size() >= kMaxObjects) Fail(fmt::format("more than {} objects", kMaxObjects));
    return &objects_.emplace_back();
  }
  Object* NewValue(decltype(PtValue::data) data) {
    Object* object = NewObject();
    object->value = &result_.tree.values.emplace_back(PtValue{std::move(data)});
    return object;
  }
  void Push(Object* object) {
    if (stack_.size() >= kMaxStack) Fail("stack too deep");
    stack_.push_back(object);
  }
  Object* Pop() {
    if (stack_.empty() || stack_.back()->mark) Fail("stack underflow");
    Object* top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<Object*> PopToMark() {
    auto mark = std::find_if(stack_.rbegin(), stack_.rend(), [](Object* o) { return o->mark; });
    if (mark == stack_.rend()) Fail("no mark on the stack");
    std::vector<Object*> items(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return items;
  }

  // Makes `child` a part of `parent`. Depth and size are limited only here.
  const PtValue* Adopt(Object* parent, Object* child) {
    if (child->value == nullptr) Fail("a storage or global outside a tensor");
    child->used = true;
    parent->depth = std::max(parent->depth, child->depth + 1);
    parent->expanded += child->expanded;
    if (parent->depth > PtTree::kMaxDepth) {
      Fail(fmt::format("nested more than {} deep", PtTree::kMaxDepth));
    }
    if (parent->expanded > PtTree::kMaxExpandedNodes) {
      Fail(fmt::format("shared values expand to more than {}", PtTree::kMaxExpandedNodes));
    }
    return child->value;
  }

  // Returns the container on top of the stack. Throws InputError if it is not of type T, or if
  // another object already refers to it.
  template <typename T>
  T* Container() const {
    Object* top = stack_.empty() ? nullptr : stack_.back();
    T* data = top && top->value && !top->used ? std::get_if<T>(&top->value->data) : nullptr;
    if (data == nullptr) Fail("items added to something that is not a new container");
    return data;
  }

  void Append(const std::vector<Object*>& items) {
    PtList* data = Container<PtList>();
    Object* list = stack_.back();
    for (Object* item : items) data->items.push_back(Adopt(list, item));
  }

  void SetItems(const std::vector<Object*>& items) {
    PtDict* data = Container<PtDict>();
    Object* dict = stack_.back();
    if (items.size() % 2 != 0) Fail("a key without a value");
    for (size_t i = 0; i < items.size(); i += 2) {
      const PtValue* key_value = Adopt(dict, items[i]);
      PtKey key;
      if (const auto* text = key_value->If<std::string>()) {
        key = *text;
      } else if (const auto* number = key_value->If<int64_t>()) {
        key = *number;
      } else {
        Fail(fmt::format("a dict key of type {}, expected int or str", PtTypeName(*key_value)));
      }
      const PtValue* value = Adopt(dict, items[i + 1]);
      if (!data->index.emplace(key, value).second) {
        Fail(fmt::format("dict key '{}' given twice", Escaped(PtKeyText(key))));
      }
      data->entries.emplace_back(std::move(key), value);
    }
  }

  Object* MakeTuple(const std::vector<Object*>& items) {
    const bool torch_tuple =
        std::any_of(items.begin(), items.end(), [](Object* o) { return o->value == nullptr; });
    if (torch_tuple) {
      Object* object = NewObject();
      object->torch_tuple = true;
      object->tuple = items;
      for (Object* item : items) {
        if (item->torch_tuple) Fail("a storage tuple inside a tuple");
        item->used = true;
      }
      return object;
    }
    Object* object = NewValue(PtTuple{});
    auto& out = std::get<PtTuple>(object->value->data).items;
    for (Object* item : items) out.push_back(Adopt(object, item));
    return object;
  }

  void PushTuple(size_t size) {
    if (stack_.size() < size) Fail("stack underflow");
    std::vector<Object*> items(size);
    for (size_t i = size; i-- > 0;) items[i] = Pop();
    Push(MakeTuple(items));
  }

  void PushString() {
    const auto bytes = Take(Number<uint32_t>());
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (FirstInvalidUtf8(text)) Fail("a string that is not UTF-8");
    const uint64_t weight = 1 + text.size() / PtTree::kTextOfNode;
    Object* object = NewValue(std::move(text));
    object->expanded = weight;
    Push(object);
  }

  void PushLong() {
    const auto bytes = Take(Byte());
    if (bytes.size() > 8) Fail("an integer beyond 64 bits");
    const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
    uint64_t value = negative ? ~uint64_t{0} : 0;
    for (size_t i = bytes.size(); i-- > 0;) {
      value = (value << 8) | static_cast<unsigned char>(bytes[i]);
    }
    Push(NewValue(static_cast<int64_t>(value)));
  }

  void PushFloat() {
    uint64_t bits = 0;
    for (const std::byte b : Take(8)) bits = (bits << 8) | static_cast<unsigned char>(b);
    Push(NewValue(std::bit_cast<double>(bits)));
  }

  void PushGlobal() {
    const std::string module(Line()), attribute(Line());
    const auto* found = std::find_if(std::begin(kGlobals), std::end(kGlobals), [&](const auto& g) {
      return g.name == module + '\n' + attribute;
    });
    const std::string dotted = module + '.' + attribute;
    if (found == std::end(kGlobals)) {
      Fail(fmt::format("it asks for '{}', which is not data", Escaped(dotted)));
    }
    auto& globals = result_.globals;
    if (std::find(globals.begin(), globals.end(), dotted) == globals.end()) {
      globals.push_back(dotted);
    }
    Object* object = NewObject();
    object->global = found;
    Push(object);
  }

  template <typename T>
  static const T* If(const Object* object) {
    return object->value ? object->value->If<T>() : nullptr;
  }

  // Reads ("storage", storage class, key, location, number of elements).
  void PushStorage() {
    const Object* id = Pop();
    const auto& items = id->tuple;
    if (!id->torch_tuple || items.size() != 5) Fail("a persistent id that does not name a storage");
    const auto* kind = If<std::string>(items[0]);
    const auto* key = If<std::string>(items[2]);
    const auto* numel = If<int64_t>(items[4]);
    if (kind == nullptr || *kind != "storage" || items[1]->global == nullptr ||
        items[1]->global->callable != Callable::kStorageClass || key == nullptr || key->empty() ||
        key->size() > 18 || key->find_first_not_of("0123456789") != std::string::npos ||
        If<std::string>(items[3]) == nullptr || numel == nullptr || *numel < 0) {
      Fail("a malformed storage id");
    }
    Object* object = NewObject();
    object->storage = Storage{*key, items[1]->global->dtype, static_cast<uint64_t>(*numel)};
    Push(object);
  }

  void Reduce() {
    const Object* arguments = Pop();
    const Object* callable = Pop();
    if (callable->global == nullptr || callable->global->callable == Callable::kStorageClass) {
      Fail("a call to something that may not be called");
    }
    if (callable->global->callable == Callable::kOrderedDict) {
      const auto* tuple = If<PtTuple>(arguments);
      if (tuple == nullptr || !tuple->items.empty()) Fail("OrderedDict with arguments");
      Push(NewValue(PtDict{}));
    } else {
      Push(RebuildTensor(arguments));
    }
  }

  // Reads (storage, offset, size, stride, requires_grad, backward hooks).
  Object* RebuildTensor(const Object* arguments) {
    const auto& items = arguments->tuple;
    if (!arguments->torch_tuple || items.size() != 6) Fail("a tensor with the wrong arguments");
    const auto* offset = If<int64_t>(items[1]);
    const auto* shape = If<PtTuple>(items[2]);
    const auto* strides = If<PtTuple>(items[3]);
    const auto* hooks = If<PtDict>(items[5]);
    if (!items[0]->storage || offset == nullptr || *offset < 0 || shape == nullptr ||
        strides == nullptr || If<bool>(items[4]) == nullptr || hooks == nullptr ||
        !hooks->entries.empty()) {
      Fail("a malformed tensor");
    }
    const Storage& storage = *items[0]->storage;
    PtTensor tensor{storage.key, storage.dtype, storage.numel, static_cast<uint64_t>(*offset), {},
                    {}};
    Integers(*shape, &tensor.shape);
    Integers(*strides, &tensor.strides);
    if (tensor.shape.size() != tensor.strides.size()) Fail("a tensor with more strides than sizes");
    const uint64_t weight = PtTree::kNodesOfTensor + tensor.shape.size();
    Object* object = NewValue(std::move(tensor));
    object->expanded = weight;
    return object;
  }

  void Integers(const PtTuple& tuple, std::vector<int64_t>* out) const {
    if (tuple.items.size() > 8) Fail("a tensor of more than 8 dimensions");
    for (const PtValue* item : tuple.items) {
      const auto* number = item->If<int64_t>();
      if (number == nullptr || *number < 0)
        Fail("a tensor size or stride that is negative or not an integer");
      out->push_back(*number);
    }
  }

  void Put(uint64_t slot) {
    if (slot >= kMaxMemo) Fail(fmt::format("memo slot {} of {}", slot, kMaxMemo));
    if (stack_.empty() || stack_.back()->mark) Fail("stack underflow");
    memo_[slot] = stack_.back();
  }
  void Get(uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) Fail(fmt::format("memo slot {} was never filled", slot));
    found->second->used = true;
    Push(found->second);
  }

  void Step(unsigned char opcode);

  std::span<const std::byte> bytes_;
  std::string_view what_;
  uint64_t at_ = 0;
  bool done_ = false;
  std::deque<Object> objects_;
  std::vector<Object*> stack_;
  std::unordered_map<uint64_t, Object*> memo_;
  PickleResult result_;
};

void Machine::Step(unsigned char opcode) {
  switch (opcode) {
    case kMark:
      Push(NewObject());
      stack_.back()->mark = true;
      return;
    case kNone:
      return Push(NewValue(PtNone{}));
    case kNewTrue:
      return Push(NewValue(true));
    case kNewFalse:
      return Push(NewValue(false));
    case kBinInt:
      return Push(NewValue(int64_t{static_cast<int32_t>(Number<uint32_t>())}));
    case kBinInt1:
      return Push(NewValue(int64_t{Byte()}));
    case kBinInt2:
      return Push(NewValue(int64_t{Number<uint16_t>()}));
    case kLong1:
      return PushLong();
    case kBinFloat:
      return PushFloat();
    case kBinUnicode:
      return PushString();
    case kEmptyList:
      return Push(NewValue(PtList{}));
    case kEmptyDict:
      return Push(NewValue(PtDict{}));
    case kEmptyTuple:
      return PushTuple(0);
    case kTuple1:
      return PushTuple(1);
    case kTuple2:
      return PushTuple(2);
    case kTuple3:
      return PushTuple(3);
    case kTuple:
      return Push(MakeTuple(PopToMark()));
    case kAppend:
      return Append({Pop()});
    case kAppends:
      return Append(PopToMark());
    case kSetItem: {
      Object* value = Pop();
      return SetItems({Pop(), value});
    }
    case kSetItems:
      return SetItems(PopToMark());
    case kGlobal:
      return PushGlobal();
    case kReduce:
      return Reduce();
    case kBinPersId:
      return PushStorage();
    case kBinPut:
      return Put(Byte());
    case kLongBinPut:
      return Put(Number<uint32_t>());
    case kBinGet:
      return Get(Byte());
    case kLongBinGet:
      return Get(Number<uint32_t>());
    case kStop: {
      const Object* root = Pop();
      if (!stack_.empty()) Fail("objects left on the stack below the result");
      if (root->value == nullptr) Fail("the result is not a value");
      result_.tree.root = root->value;
      done_ = true;
      return;
    }
    default:
      --at_;
      Fail(fmt::format("opcode {:#04x}", opcode));
  }
}

}  // namespace

PickleResult ReadPickle(std::span<const std::byte> bytes, std::string_view what) {
  return Machine(bytes, what).Run();
}

}  // namespace oscar
