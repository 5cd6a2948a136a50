// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The pickle part of torch.save. Values are written without a memo, tensors as calls of
// _rebuild_tensor_v2 with persistent storage ids. A `dict` must be exactly EMPTY_DICT + SETITEMS:
// torch.load(weights_only=True) refuses a file with a type tag.
#include "export/formats/pt/pt_writer.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <map>
#include <span>

#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "export/formats/pt/pickle_format.h"
#include "export/formats/pt/zip_writer.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using namespace pickle;  // NOLINT(build/namespaces): opcodes and limits of the dialect

class Pickler {
 public:
  std::string Pickle(const PtOut& value) {
    Op(kProto);
    out_ += static_cast<char>(kProtocol);
    Value(value, 1);
    Op(kStop);
    return std::move(out_);
  }
  const std::vector<std::span<const std::byte>>& storages() const { return storages_; }

 private:
  void Op(Opcode opcode) { out_ += static_cast<char>(opcode); }

  template <typename T>
  void Number(T value) {  // little-endian
    for (size_t i = 0; i < sizeof(T); ++i) out_ += static_cast<char>((value >> (8 * i)) & 0xff);
  }

  void Value(const PtOut& value, int depth) {
    if (depth > PtTree::kMaxDepth) {
      throw InputError(
          fmt::format("a value nested more than {} levels deep cannot be written to a .pt file",
                      PtTree::kMaxDepth));
    }
    std::visit([&](const auto& data) { Write(data, depth); }, value.data);
  }

  void Write(PtNone, int) { Op(kNone); }
  void Write(bool flag, int) { Op(flag ? kNewTrue : kNewFalse); }

  void Write(int64_t number, int) {
    if (number >= 0 && number <= 0xff) {
      Op(kBinInt1);
      Number(static_cast<uint8_t>(number));
    } else if (number >= 0 && number <= 0xffff) {
      Op(kBinInt2);
      Number(static_cast<uint16_t>(number));
    } else if (number >= std::numeric_limits<int32_t>::min() &&
               number <= std::numeric_limits<int32_t>::max()) {
      Op(kBinInt);
      Number(static_cast<uint32_t>(number));
    } else {
      Op(kLong1);
      out_ += '\x08';
      Number(static_cast<uint64_t>(number));
    }
  }

  void Write(double number, int) {
    Op(kBinFloat);
    const auto bits = std::bit_cast<uint64_t>(number);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>((bits >> shift) & 0xff);
  }

  void Write(const std::string& text, int) {
    if (FirstInvalidUtf8(text) || text.size() > kMaxBytes) {
      throw InputError(
          fmt::format("cannot write the string '{}': it is not UTF-8 or is longer than {} bytes",
                      Escaped(text), kMaxBytes));
    }
    Op(kBinUnicode);
    Number(static_cast<uint32_t>(text.size()));
    out_ += text;
  }

  void Write(const PtOutList& items, int depth) {
    Op(kEmptyList);
    if (items.empty()) return;
    Op(kMark);
    for (const PtOut& item : items) Value(item, depth + 1);
    Op(kAppends);
  }

  void Write(const PtOutDict& entries, int depth) {
    Op(kEmptyDict);
    if (entries.empty()) return;
    Op(kMark);
    for (const auto& [key, value] : entries) {
      std::visit([&](const auto& k) { Write(k, depth + 1); }, key);
      Value(value, depth + 1);
    }
    Op(kSetItems);
  }

  void Write(const FloatTensorPtr& tensor, int) {
    OSCAR_CHECK(tensor != nullptr);
    const auto [known, added] = keys_.emplace(tensor.get(), storages_.size());
    const auto values = std::as_bytes(std::span(tensor->values));
    if (added) storages_.push_back(values);
    WriteView({DType::kF32, tensor->shape, values}, known->second);
  }

  void Write(const TensorBytes& tensor, int) {
    storages_.push_back(tensor.values);
    WriteView(tensor, storages_.size() - 1);
  }

  // Writes a contiguous tensor that covers the whole storage.
  void WriteView(const TensorBytes& tensor, size_t storage) {
    int64_t count = 1;
    for (const int64_t size : tensor.shape) count *= size;
    OSCAR_CHECK_EQ(count * DTypeBytes(tensor.dtype), static_cast<int64_t>(tensor.values.size()));
    CallGlobal("torch._utils\n_rebuild_tensor_v2");
    Op(kMark);
    Op(kMark);
    Write(std::string("storage"), 0);
    CallGlobal(StorageClass(tensor.dtype));
    Write(std::to_string(storage), 0);
    Write(std::string("cpu"), 0);
    Write(count, 0);
    Op(kTuple);
    Op(kBinPersId);
    Write(int64_t{0}, 0);
    std::vector<int64_t> strides(tensor.shape.size(), 1);
    for (size_t d = strides.size(); d-- > 1;) {
      strides[d - 1] = strides[d] * std::max<int64_t>(tensor.shape[d], 1);
    }
    for (const auto* sizes : {&tensor.shape, &std::as_const(strides)}) {
      Op(kMark);
      for (const int64_t size : *sizes) Write(size, 0);
      Op(kTuple);
    }
    Op(kNewFalse);
    CallGlobal("collections\nOrderedDict");
    Op(kEmptyTuple);
    Op(kReduce);
    Op(kTuple);
    Op(kReduce);
  }

  static std::string_view StorageClass(DType dtype) {
    for (const Global& global : kGlobals) {
      if (global.callable == Callable::kStorageClass && global.dtype == dtype) return global.name;
    }
    OSCAR_CHECK(false);  // torch has no storage of this type
    return {};
  }

  void CallGlobal(std::string_view global) {
    Op(kGlobal);
    out_ += global;
    out_ += '\n';
  }

  std::string out_;
  std::map<const FloatTensor*, size_t> keys_;  // to index in storages_
  std::vector<std::span<const std::byte>> storages_;
};

}  // namespace

PtOut PtFromJson(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null:
      return {};
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<int64_t>();
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        throw InputError(fmt::format(
            "cannot write the number {} to a .pt file: it exceeds a signed 64-bit integer",
            json.dump()));
      }
      return json.get<int64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get<std::string>();
    case Json::value_t::array: {
      PtOutList list;
      for (const Json& item : json) list.push_back(PtFromJson(item));
      return list;
    }
    case Json::value_t::object: {
      PtOutDict dict;
      for (const auto& [key, item] : json.items()) dict.emplace_back(key, PtFromJson(item));
      return dict;
    }
    default:
      OSCAR_CHECK(false);
      return {};
  }
}

void WritePt(const std::filesystem::path& path, const PtOut& value, std::string_view prefix) {
  Pickler pickler;
  const std::string pickled = pickler.Pickle(value);
  if (pickled.size() > kMaxBytes) {
    throw InputError(fmt::format("{}: the pickle has {} bytes, but at most {} can be read back",
                                 path.string(), pickled.size(), kMaxBytes));
  }
  ZipWriter writer(path, std::string(prefix));
  writer.Add("data.pkl", pickled);
  writer.Add(".format_version", "1");
  writer.Add(".storage_alignment", "64");
  writer.Add("byteorder", "little");
  for (size_t i = 0; i < pickler.storages().size(); ++i) {
    writer.Add(fmt::format("data/{}", i), pickler.storages()[i]);
  }
  writer.Add("version", "3\n");
  writer.Commit();
}

}  // namespace oscar
