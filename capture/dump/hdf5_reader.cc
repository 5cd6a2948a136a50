// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <map>

#include "capture/dump/hdf5_file.h"
#include "capture/dump/hdf5_inspect.h"
#include "capture/dump/hdf5_library.h"
#include "capture/files/posix_file.h"
#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {

struct Hdf5Reader::State {
  std::filesystem::path path;
  Hdf5Handle hdf5;
  std::map<std::string, Hdf5Object> objects;  // keyed by normalized path

  ~State() {
    const Hdf5Lock lock;
    hdf5.Reset();
  }

  [[noreturn]] void Refuse(std::string_view object, const std::string& why) const {
    throw InputError(
        fmt::format("{}: {}: {}", path.string(), Escaped(NormalizedHdf5Path(object)), why));
  }
  void Require(bool good, std::string_view object, std::string_view doing) const {
    if (!good) Refuse(object, fmt::format("cannot {}: HDF5: {}", doing, Hdf5Reason()));
  }

  const Hdf5Object& Find(std::string_view object) const {
    const auto it = objects.find(NormalizedHdf5Path(object));
    if (it == objects.end()) Refuse(object, "is not in the file");
    return it->second;
  }

  Hdf5Handle OpenAttribute(std::string_view object, std::string_view name) const {
    if (!Find(object).attributes.contains(std::string(name))) {
      Refuse(object, fmt::format("has no attribute {}", Quoted(name)));
    }
    Hdf5Handle attribute(H5Aopen_by_name(hdf5.get(), NormalizedHdf5Path(object).c_str(),
                                         std::string(name).c_str(), H5P_DEFAULT, H5P_DEFAULT));
    Require(attribute.valid(), object, fmt::format("open attribute {}", Quoted(name)));
    return attribute;
  }

  // Reads one number of the given class, converted to `memory_type`.
  void ReadNumber(std::string_view object, std::string_view name, H5T_class_t kind,
                  hid_t memory_type, void* out) const {
    const Hdf5Handle attribute = OpenAttribute(object, name);
    const Hdf5Handle type(H5Aget_type(attribute.get()));
    const Hdf5Handle space(H5Aget_space(attribute.get()));
    const size_t size = H5Tget_size(type.get());
    const bool fits =
        H5Tget_class(type.get()) == kind && size <= 8 &&
        !(kind == H5T_INTEGER && size == 8 && H5Tget_sign(type.get()) == H5T_SGN_NONE);
    if (!fits || H5Sget_simple_extent_npoints(space.get()) != 1) {
      Refuse(object, fmt::format("attribute {} must be one {}", Quoted(name),
                                 kind == H5T_INTEGER ? "int64" : "float64"));
    }
    Require(H5Aread(attribute.get(), memory_type, out) >= 0, object,
            fmt::format("read attribute {}", Quoted(name)));
  }

  std::vector<std::string> ReadStrings(std::string_view object, std::string_view name) const {
    const Hdf5Handle attribute = OpenAttribute(object, name);
    const Hdf5Handle type(H5Aget_type(attribute.get()));
    const Hdf5Handle space(H5Aget_space(attribute.get()));
    if (H5Tget_class(type.get()) != H5T_STRING) {
      Refuse(object, fmt::format("attribute {} must hold strings", Quoted(name)));
    }
    const size_t width = H5Tget_size(type.get());
    const auto count = static_cast<size_t>(H5Sget_simple_extent_npoints(space.get()));
    std::string padded(width * count, '\0');  // opening bounded its size by the file size
    Require(padded.empty() || H5Aread(attribute.get(), type.get(), padded.data()) >= 0, object,
            fmt::format("read attribute {}", Quoted(name)));
    std::vector<std::string> values;
    for (size_t i = 0; i < count; ++i) {
      const std::string field = padded.substr(i * width, width);
      values.push_back(field.substr(0, field.find('\0')));
    }
    return values;
  }
};

Hdf5Reader::Hdf5Reader(const std::filesystem::path& path) : Hdf5Reader(path, true) {
  CheckSources();
}

Hdf5Reader::Hdf5Reader(const std::filesystem::path& path, bool reads_others)
    : state_(std::make_unique<State>()) {
  constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
  uint64_t size = 0;
  const int descriptor = OpenRegular(path, &size);  // refuses a pipe, on which HDF5 would wait
  std::array<char, kSignature.size()> head{};
  const ssize_t count = pread(descriptor, head.data(), head.size(), 0);
  close(descriptor);
  if (count != static_cast<ssize_t>(head.size()) ||
      std::string_view(head.data(), head.size()) != kSignature) {
    throw InputError(fmt::format("{}: not an HDF5 file", path.string()));
  }

  const Hdf5Lock lock;
  state_->path = path;
  H5PLset_loading_state(0);  // loads no plugins, so a filter that is not built in is an error
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  // Finished files never change, and some file systems do not support locks.
  state_->Require(H5Pset_file_locking(access.get(), false, true) >= 0, "/", "prepare reading");
  state_->hdf5 = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
  state_->Require(state_->hdf5.valid(), "/", "open the file");
  haddr_t end = 0;
  state_->Require(H5Fget_eoa(state_->hdf5.get(), &end) >= 0, "/", "read the size");
  if (end != size) {
    state_->Refuse("/",
                   fmt::format("the file has {} bytes, but its superblock says {}", size, end));
  }
  state_->objects = InspectHdf5(state_->hdf5.get(), size, path.string());
  for (const auto& [name, object] : state_->objects)
    if (!reads_others && !object.sources.empty())
      state_->Refuse(name, "is the source of a virtual dataset and is itself virtual");
}

// Checks the sources of virtual datasets, because HDF5 reads zeros where a source is missing or too
// small.
void Hdf5Reader::CheckSources() const {
  std::map<std::string, Hdf5Reader> sources;
  for (const auto& [name, object] : state_->objects) {
    for (const auto& [file, expected] : object.sources) {
      const auto found = sources.find(file);
      const Hdf5Reader& source =
          found != sources.end()
              ? found->second
              : sources
                    .emplace(file,
                             Hdf5Reader(std::filesystem::path(state_->path).replace_filename(file),
                                        /*reads_others=*/false))
                    .first->second;
      const Hdf5DatasetInfo& info = source.dataset(name);
      if (info.type != expected.type || info.shape != expected.shape) {
        source.state_->Refuse(
            name, fmt::format("is {} [{}], but {} expects {} [{}]", Hdf5TypeName(info.type),
                              fmt::join(info.shape, ", "), state_->path.string(),
                              Hdf5TypeName(expected.type), fmt::join(expected.shape, ", ")));
      }
    }
  }
}

Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

const std::filesystem::path& Hdf5Reader::path() const { return state_->path; }

bool Hdf5Reader::Exists(std::string_view object) const {
  return state_->objects.contains(NormalizedHdf5Path(object));
}

bool Hdf5Reader::IsGroup(std::string_view object) const {
  return Exists(object) && state_->Find(object).is_group;
}

std::vector<std::string> Hdf5Reader::Children(std::string_view group) const {
  const Hdf5Object& object = state_->Find(group);
  if (!object.is_group) state_->Refuse(group, "is a dataset, expected a group");
  return {object.children.begin(), object.children.end()};
}

const Hdf5DatasetInfo& Hdf5Reader::dataset(std::string_view dataset) const {
  const Hdf5Object& object = state_->Find(dataset);
  if (object.is_group) state_->Refuse(dataset, "is a group, expected a dataset");
  return object.info;
}

size_t Hdf5Reader::CheckedCount(std::string_view name, Hdf5Type type,
                                const Hdf5Shape& expected) const {
  const Hdf5DatasetInfo& info = dataset(name);
  bool equal = info.type == type && info.shape.size() == expected.size();
  size_t count = 1;
  for (size_t i = 0; equal && i < expected.size(); ++i) {
    equal = expected[i] == -1 || expected[i] == info.shape[i];
    count *= static_cast<size_t>(info.shape[i]);  // can only overflow if a zero follows
  }
  if (!equal) {
    state_->Refuse(name, fmt::format("expected {} [{}], found {} [{}]", Hdf5TypeName(type),
                                     fmt::join(expected, ", "), Hdf5TypeName(info.type),
                                     fmt::join(info.shape, ", ")));
  }
  return count;
}

void Hdf5Reader::ReadRaw(std::string_view name, int64_t first_row, void* out, size_t count) const {
  const Hdf5Lock lock;
  const Hdf5DatasetInfo& info = dataset(name);
  if (count == 0) return;
  std::vector<hsize_t> shape(info.shape.begin(), info.shape.end());
  size_t row_values = 1;
  for (size_t i = 1; i < shape.size(); ++i) row_values *= shape[i];
  OSCAR_CHECK(row_values > 0 && count % row_values == 0);
  const size_t rows = count / row_values;
  if (first_row < 0 || rows > shape[0] || static_cast<hsize_t>(first_row) > shape[0] - rows) {
    state_->Refuse(name, fmt::format("rows {} to {} were requested, but it has {}", first_row,
                                     first_row + static_cast<int64_t>(rows), shape[0]));
  }
  std::vector<hsize_t> start(shape.size(), 0), extent = shape;
  start[0] = static_cast<hsize_t>(first_row);
  extent[0] = rows;
  const Hdf5Handle handle(
      H5Dopen2(state_->hdf5.get(), NormalizedHdf5Path(name).c_str(), H5P_DEFAULT));
  state_->Require(handle.valid(), name, "open the dataset");
  const int rank = static_cast<int>(shape.size());
  const Hdf5Handle memory(H5Screate_simple(rank, extent.data(), nullptr));
  const Hdf5Handle file(H5Dget_space(handle.get()));
  const bool good = H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, start.data(), nullptr,
                                        extent.data(), nullptr) >= 0 &&
                    H5Dread(handle.get(), Hdf5FileType(info.type), memory.get(), file.get(),
                            H5P_DEFAULT, out) >= 0;
  state_->Require(good, name, "read (damaged data?)");
}

bool Hdf5Reader::HasAttribute(std::string_view object, std::string_view name) const {
  return state_->Find(object).attributes.contains(std::string(name));
}

std::string Hdf5Reader::StringAttribute(std::string_view object, std::string_view name) const {
  const Hdf5Lock lock;
  std::vector<std::string> values = state_->ReadStrings(object, name);
  if (values.size() != 1) {
    state_->Refuse(object, fmt::format("attribute {} must be one string, found {}", Quoted(name),
                                       values.size()));
  }
  return values[0];
}

int64_t Hdf5Reader::IntAttribute(std::string_view object, std::string_view name) const {
  const Hdf5Lock lock;
  int64_t value = 0;
  state_->ReadNumber(object, name, H5T_INTEGER, H5T_NATIVE_INT64, &value);
  return value;
}

double Hdf5Reader::DoubleAttribute(std::string_view object, std::string_view name) const {
  const Hdf5Lock lock;
  double value = 0;
  state_->ReadNumber(object, name, H5T_FLOAT, H5T_NATIVE_DOUBLE, &value);
  return value;
}

}  // namespace oscar
