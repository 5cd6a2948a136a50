// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own HDF5 files: per-layer state, moments, dumps. Datasets are chunked with a fletcher32
// checksum per chunk. No times are stored, so the same calls with the same values give the same
// bytes. The reader only accepts files that the writer made, or that h5py made with the same
// content. Object paths look like "/layer/3/k"; the root is "/". Traps: the HDF5 library serves one
// thread at a time, so calls from several threads wait for each other. Arrays have at least one
// dimension (scalars are attributes).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace oscar {

// Little-endian element types; float16 is IEEE 754's.
enum class Hdf5Type { kFloat64, kFloat32, kFloat16, kInt64, kInt32, kUInt16, kUInt8 };

// The bits of a float16; nothing here computes with it.
struct Float16 {
  uint16_t bits = 0;
  bool operator==(const Float16&) const = default;
};

template <typename T>
constexpr Hdf5Type Hdf5TypeOf() {
  using V = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<V, double>)
    return Hdf5Type::kFloat64;
  else if constexpr (std::is_same_v<V, float>)
    return Hdf5Type::kFloat32;
  else if constexpr (std::is_same_v<V, Float16>)
    return Hdf5Type::kFloat16;
  else if constexpr (std::is_same_v<V, int64_t>)
    return Hdf5Type::kInt64;
  else if constexpr (std::is_same_v<V, int32_t>)
    return Hdf5Type::kInt32;
  else if constexpr (std::is_same_v<V, uint16_t>)
    return Hdf5Type::kUInt16;
  else {
    static_assert(std::is_same_v<V, uint8_t>, "not an element type of oscar's HDF5 files");
    return Hdf5Type::kUInt8;
  }
}

std::string_view Hdf5TypeName(Hdf5Type type);  // "float64"
int64_t Hdf5TypeBytes(Hdf5Type type);          // bytes per element

using Hdf5Shape = std::vector<int64_t>;  // row-major, as h5py prints it

struct Hdf5DatasetOptions {
  int deflate_level = 0;  // 0 stores uncompressed; 1 to 9 compress, with byte shuffle
};

// Throws ResourceError naming file and object if a write fails (disk full, I/O); the writer may
// then only be destroyed. Wrong use (declaring a dataset twice, rows outside the shape) fails an
// OSCAR_CHECK.
class Hdf5Writer {
 public:
  // Writes a temporary sibling, which Commit() renames to `path`.
  explicit Hdf5Writer(const std::filesystem::path& path);
  ~Hdf5Writer();  // removes an unfinished file

  // Creates missing parents. An existing group is kept.
  void CreateGroup(std::string_view group);

  // Sets an attribute of the root, a group or an existing dataset, once per name. Strings must be
  // UTF-8 without NUL.
  void SetAttribute(std::string_view object, std::string_view name, std::string_view value);
  void SetAttribute(std::string_view object, std::string_view name, const char* value) {
    SetAttribute(object, name, std::string_view(value));
  }
  void SetAttribute(std::string_view object, std::string_view name, int64_t value);
  void SetAttribute(std::string_view object, std::string_view name, double value);

  // Declares a dataset for WriteRows() and creates missing groups.
  void Declare(std::string_view dataset, Hdf5Type type, const Hdf5Shape& shape,
               const Hdf5DatasetOptions& options = {});

  // Declares a dataset whose rows come from the same dataset in other files, one file after
  // another. File names are relative to this file. Sources may be smaller in other dimensions; the
  // missing values read as zeros.
  struct Source {
    std::string file;
    Hdf5Shape shape;
  };
  void DeclareVirtual(std::string_view dataset, Hdf5Type type, const Hdf5Shape& shape,
                      const std::vector<Source>& sources);

  // `values` are whole rows of the first dimension, [first_row, first_row + rows). Every row must
  // be written exactly once. A dataset's memory is released after its last row.
  template <typename T>
  void WriteRows(std::string_view dataset, int64_t first_row, std::span<const T> values) {
    WriteRaw(dataset, Hdf5TypeOf<T>(), first_row, values.data(), values.size());
  }

  // Declares and writes a whole dataset.
  template <typename T>
  void Write(std::string_view dataset, const Hdf5Shape& shape, std::span<const T> values,
             const Hdf5DatasetOptions& options = {}) {
    Declare(dataset, Hdf5TypeOf<T>(), shape, options);
    if (!values.empty()) WriteRows<T>(dataset, 0, values);
  }

  void Commit();  // finishes, fsyncs and renames the file, and fsyncs its directory

 private:
  struct State;
  void WriteRaw(std::string_view dataset, Hdf5Type type, int64_t first_row, const void* values,
                size_t count);
  std::unique_ptr<State> state_;
};

struct Hdf5DatasetInfo {
  Hdf5Type type{};
  Hdf5Shape shape;
};

// Reads files written by Hdf5Writer. Opening refuses other kinds of objects, links, filters, types
// and storage, and sizes that the file cannot contain. All errors are InputErrors naming file and
// object.
class Hdf5Reader {
 public:
  // If the file has virtual datasets (DeclareVirtual), their source files are checked in the same
  // way.
  explicit Hdf5Reader(const std::filesystem::path& path);
  ~Hdf5Reader();
  Hdf5Reader(Hdf5Reader&&) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

  const std::filesystem::path& path() const;
  bool Exists(std::string_view object) const;  // a group or a dataset
  bool IsGroup(std::string_view object) const;
  std::vector<std::string> Children(std::string_view group) const;  // sorted names
  const Hdf5DatasetInfo& dataset(std::string_view dataset) const;   // throws if it is not a dataset

  // Reads a whole dataset. It must have T's type and the expected shape, where -1 matches any size.
  template <typename T>
  std::vector<T> Read(std::string_view dataset, const Hdf5Shape& expected_shape) const {
    std::vector<T> values(CheckedCount(dataset, Hdf5TypeOf<T>(), expected_shape));
    ReadRaw(dataset, 0, values.data(), values.size());
    return values;
  }

  // Fills `out` with whole rows of the first dimension, starting at `first_row`.
  template <typename T>
  void ReadRows(std::string_view dataset, const Hdf5Shape& expected_shape, int64_t first_row,
                std::span<T> out) const {
    CheckedCount(dataset, Hdf5TypeOf<T>(), expected_shape);
    ReadRaw(dataset, first_row, out.data(), out.size());
  }

  bool HasAttribute(std::string_view object, std::string_view name) const;
  std::string StringAttribute(std::string_view object, std::string_view name) const;
  int64_t IntAttribute(std::string_view object, std::string_view name) const;
  double DoubleAttribute(std::string_view object, std::string_view name) const;

 private:
  struct State;
  Hdf5Reader(const std::filesystem::path& path, bool reads_others);
  void CheckSources() const;
  size_t CheckedCount(std::string_view dataset, Hdf5Type type, const Hdf5Shape& expected) const;
  void ReadRaw(std::string_view dataset, int64_t first_row, void* out, size_t count) const;
  std::unique_ptr<State> state_;
};

}  // namespace oscar
