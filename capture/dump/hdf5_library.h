// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared parts for using the HDF5 C library: handles that close themselves, a lock, the library's
// error text and the element types of our files. Only this folder includes hdf5.h. Trap: close
// handles before the file they belong to, so declare them after it.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/dump/hdf5_file.h"

namespace oscar {

inline constexpr size_t kHdf5MaxRank = 8;

// Owns one HDF5 identifier of any kind.
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  explicit Hdf5Handle(hid_t id) : id_(id) {}
  ~Hdf5Handle() { Reset(); }
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  // Returns true if the identifier was closed without an error, or was not open.
  bool Reset();

 private:
  hid_t id_ = -1;
};

// Held during every use of the library, which Debian builds without thread safety. Disables the
// library's own error printing.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::lock_guard<std::recursive_mutex> guard_;
};

// Returns the deepest message on the library's error stack; "" if there is none.
std::string Hdf5Reason();

// Returns the little-endian type in files and in memory; the library owns it.
hid_t Hdf5FileType(Hdf5Type type);
// Returns our type that equals a stored one, or nothing.
std::optional<Hdf5Type> FromHdf5FileType(hid_t stored);

// Returns "/a/b" for "a/b", "/a/b" or "/a/b/"; "/" for "" or "/".
std::string NormalizedHdf5Path(std::string_view path);

}  // namespace oscar
