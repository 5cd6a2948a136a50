// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The pickle dialect of torch.save, defined once for reader and writer: opcodes, globals and
// limits. Trap: this is an allow-list. Anything else is refused. Add an opcode or global only if it
// cannot do more than build data.
#pragma once

#include <cstddef>
#include <string_view>

#include "capture/checkpoint/dtype.h"

namespace oscar::pickle {

inline constexpr unsigned char kProtocol = 2;
inline constexpr size_t kMaxBytes = size_t{16} << 20;   // size of data.pkl
inline constexpr size_t kMaxMemo = size_t{1} << 16;     // memo slots
inline constexpr size_t kMaxStack = size_t{1} << 16;    // stack objects
inline constexpr size_t kMaxObjects = size_t{1} << 17;  // objects made while reading

// The opcodes that torch.save emits for data with protocol 2. Source: Python's Lib/pickletools.py.
enum Opcode : unsigned char {
  kProto = 0x80,
  kStop = '.',
  kMark = '(',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kGlobal = 'c',
  kReduce = 'R',
  kBinPersId = 'Q',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j'
};

enum class Callable { kRebuildTensor, kOrderedDict, kStorageClass };

struct Global {
  std::string_view name;  // module and attribute, spelled as in the GLOBAL opcode
  Callable callable;
  DType dtype{};  // for a storage class
};

inline constexpr Global kGlobals[] = {
    {"torch._utils\n_rebuild_tensor_v2", Callable::kRebuildTensor},
    {"collections\nOrderedDict", Callable::kOrderedDict},
    {"torch\nFloatStorage", Callable::kStorageClass, DType::kF32},
    {"torch\nDoubleStorage", Callable::kStorageClass, DType::kF64},
    {"torch\nHalfStorage", Callable::kStorageClass, DType::kF16},
    {"torch\nBFloat16Storage", Callable::kStorageClass, DType::kBF16},
    {"torch\nLongStorage", Callable::kStorageClass, DType::kI64},
    {"torch\nIntStorage", Callable::kStorageClass, DType::kI32},
    {"torch\nShortStorage", Callable::kStorageClass, DType::kI16},
    {"torch\nCharStorage", Callable::kStorageClass, DType::kI8},
    {"torch\nByteStorage", Callable::kStorageClass, DType::kU8},
    {"torch\nBoolStorage", Callable::kStorageClass, DType::kBool},
};

}  // namespace oscar::pickle
