// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "capture/dump/hdf5_driver.h"
#include "capture/dump/hdf5_file.h"
#include "capture/dump/hdf5_library.h"
#include "capture/files/atomic_file.h"  // SyncPath
#include "capture/files/posix_file.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr hsize_t kChunkBytes = 512 << 10;  // target; half of HDF5's default chunk cache

// Chunks are whole rows if these fit, otherwise parts of rows. Leading dimensions shrink first.
std::vector<hsize_t> ChunkShape(const std::vector<hsize_t>& shape, hsize_t element_bytes) {
  std::vector<hsize_t> chunk = shape;
  for (size_t i = 0; i < chunk.size(); ++i) {
    hsize_t inner = element_bytes;
    for (size_t k = i + 1; k < chunk.size(); ++k) inner *= chunk[k];
    chunk[i] = std::clamp<hsize_t>(kChunkBytes / inner, 1, chunk[i]);
    if (inner <= kChunkBytes) break;
  }
  return chunk;
}

}  // namespace

struct Hdf5Writer::State {
  struct Dataset {
    Hdf5Handle handle;
    Hdf5Type type{};
    std::vector<hsize_t> shape;
    hsize_t rows_written = 0;
  };

  std::filesystem::path path;
  TemporaryFile file;  // path is empty once the file is finished
  Hdf5Sink sink;
  Hdf5Handle driver, hdf5, group_options;
  std::map<std::string, Dataset> datasets;

  ~State() {
    const Hdf5Lock lock;
    CloseHdf5();
    if (file.descriptor >= 0) close(file.descriptor);
    if (!file.path.empty()) unlink(file.path.c_str());
  }

  // Closes datasets before the file. Nothing here can fail for lack of space (hdf5_driver.h).
  bool CloseHdf5() {
    bool good = true;
    for (auto& [name, dataset] : datasets) good = dataset.handle.Reset() && good;
    good = group_options.Reset() && good;
    good = hdf5.Reset() && good;
    return driver.Reset() && good;
  }

  // Throws unless both the library and the disk succeeded.
  void Require(bool good, std::string_view action, std::string_view object) const {
    const std::string doing = fmt::format("{} {} in", action, object);
    if (sink.error != 0) {
      ThrowResource(fmt::format("{} (writing {} bytes at offset {})", doing, sink.error_size,
                                sink.error_offset),
                    path, sink.error);
    }
    if (!good) {
      throw ResourceError(
          fmt::format("cannot {} {}: HDF5: {}", doing, path.string(), Hdf5Reason()));
    }
  }

  void MakeGroups(const std::string& group) {
    for (size_t end = group.find('/', 1); group != "/"; end = group.find('/', end + 1)) {
      const std::string prefix = group.substr(0, end);
      const htri_t exists = H5Lexists(hdf5.get(), prefix.c_str(), H5P_DEFAULT);
      Require(exists >= 0, "look up group", prefix);
      if (exists == 0) {
        const Hdf5Handle made(
            H5Gcreate2(hdf5.get(), prefix.c_str(), H5P_DEFAULT, group_options.get(), H5P_DEFAULT));
        Require(made.valid(), "create group", prefix);
      }
      if (end == group.npos) return;
    }
  }

  void WriteAttribute(std::string_view object, std::string_view name, hid_t type,
                      const Hdf5Handle& space, const void* value) {
    const std::string where = NormalizedHdf5Path(object);
    const std::string label = fmt::format("attribute {} of {}", name, where);
    const Hdf5Handle owner(H5Oopen(hdf5.get(), where.c_str(), H5P_DEFAULT));
    Require(owner.valid(), "open the owner of", label);
    const Hdf5Handle attribute(H5Acreate2(owner.get(), std::string(name).c_str(), type, space.get(),
                                          H5P_DEFAULT, H5P_DEFAULT));
    Require(attribute.valid(), "create", label);
    Require(value == nullptr || H5Awrite(attribute.get(), type, value) >= 0, "write", label);
  }
};

Hdf5Writer::Hdf5Writer(const std::filesystem::path& path) : state_(std::make_unique<State>()) {
  const Hdf5Lock lock;
  state_->path = path;
  state_->file = CreateTemporarySibling(path);
  state_->sink.descriptor = state_->file.descriptor;

  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE));
  state_->group_options = Hdf5Handle(H5Pcreate(H5P_GROUP_CREATE));
  state_->driver = UseHdf5Sink(access.get(), &state_->sink);
  // The 1.10 format has checksums for all metadata.
  const bool ready = state_->driver.valid() && H5Pset_obj_track_times(creation.get(), false) >= 0 &&
                     H5Pset_obj_track_times(state_->group_options.get(), false) >= 0 &&
                     H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0;
  state_->Require(ready, "prepare", "/");
  state_->hdf5 = Hdf5Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));
  state_->Require(state_->hdf5.valid(), "create", "/");
}

Hdf5Writer::~Hdf5Writer() = default;

void Hdf5Writer::CreateGroup(std::string_view group) {
  const Hdf5Lock lock;
  state_->MakeGroups(NormalizedHdf5Path(group));
}

void Hdf5Writer::SetAttribute(std::string_view object, std::string_view name, int64_t value) {
  const Hdf5Lock lock;
  const Hdf5Handle space(H5Screate(H5S_SCALAR));
  state_->WriteAttribute(object, name, H5T_STD_I64LE, space, &value);
}

void Hdf5Writer::SetAttribute(std::string_view object, std::string_view name, double value) {
  const Hdf5Lock lock;
  const Hdf5Handle space(H5Screate(H5S_SCALAR));
  state_->WriteAttribute(object, name, H5T_IEEE_F64LE, space, &value);
}

void Hdf5Writer::SetAttribute(std::string_view object, std::string_view name,
                              std::string_view value) {
  const Hdf5Lock lock;
  OSCAR_CHECK(value.find('\0') == value.npos);
  std::string padded(value);
  padded.resize(std::max<size_t>(value.size(), 1));  // HDF5 has no strings of 0 bytes
  const Hdf5Handle type(H5Tcopy(H5T_C_S1));
  const bool ready = H5Tset_size(type.get(), padded.size()) >= 0 &&
                     H5Tset_strpad(type.get(), H5T_STR_NULLPAD) >= 0 &&
                     H5Tset_cset(type.get(), H5T_CSET_UTF8) >= 0;
  state_->Require(ready, "prepare attributes of", object);
  const Hdf5Handle space(H5Screate(H5S_SCALAR));
  state_->WriteAttribute(object, name, type.get(), space, padded.data());
}

void Hdf5Writer::Declare(std::string_view dataset, Hdf5Type type, const Hdf5Shape& shape,
                         const Hdf5DatasetOptions& options) {
  const Hdf5Lock lock;
  const std::string name = NormalizedHdf5Path(dataset);
  OSCAR_CHECK(!shape.empty());
  OSCAR_CHECK_LE(shape.size(), kHdf5MaxRank);
  OSCAR_CHECK_LE(0, options.deflate_level);
  OSCAR_CHECK_LE(options.deflate_level, 9);
  state_->MakeGroups(NormalizedHdf5Path(name.substr(0, name.rfind('/'))));

  State::Dataset made;
  made.type = type;
  bool empty = false;
  for (const int64_t dim : shape) {
    OSCAR_CHECK_LE(0, dim);
    made.shape.push_back(static_cast<hsize_t>(dim));
    empty = empty || dim == 0;
  }
  const int rank = static_cast<int>(shape.size());
  const Hdf5Handle space(H5Screate_simple(rank, made.shape.data(), nullptr));
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE));
  // Fills at allocation, so that the unused part of the last chunks does not contain old memory.
  bool ready = space.valid() && H5Pset_obj_track_times(creation.get(), false) >= 0 &&
               H5Pset_fill_time(creation.get(), H5D_FILL_TIME_ALLOC) >= 0;
  if (!empty) {
    const auto chunk = ChunkShape(made.shape, static_cast<hsize_t>(Hdf5TypeBytes(type)));
    ready = ready && H5Pset_chunk(creation.get(), rank, chunk.data()) >= 0;
    if (options.deflate_level > 0) {
      ready = ready && H5Pset_shuffle(creation.get()) >= 0 &&
              H5Pset_deflate(creation.get(), static_cast<unsigned>(options.deflate_level)) >= 0;
    }
    ready = ready && H5Pset_fletcher32(creation.get()) >= 0;  // last, so that it is checked before
                                                              // inflating
  }
  state_->Require(ready, "prepare dataset", name);
  made.handle = Hdf5Handle(H5Dcreate2(state_->hdf5.get(), name.c_str(), Hdf5FileType(type),
                                      space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT));
  state_->Require(made.handle.valid(), "create dataset", name);
  if (empty) made.rows_written = made.shape[0];
  const bool is_new = state_->datasets.emplace(name, std::move(made)).second;
  OSCAR_CHECK(is_new);
}

void Hdf5Writer::DeclareVirtual(std::string_view dataset, Hdf5Type type, const Hdf5Shape& shape,
                                const std::vector<Source>& sources) {
  const Hdf5Lock lock;
  const std::string name = NormalizedHdf5Path(dataset);
  state_->MakeGroups(NormalizedHdf5Path(name.substr(0, name.rfind('/'))));
  State::Dataset made;
  made.type = type;
  made.shape.assign(shape.begin(), shape.end());
  const int rank = static_cast<int>(shape.size());
  const Hdf5Handle space(H5Screate_simple(rank, made.shape.data(), nullptr));
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE));
  bool ready = space.valid() && H5Pset_obj_track_times(creation.get(), false) >= 0;
  std::vector<hsize_t> start(shape.size(), 0);
  for (const auto& [file, of_file] : sources) {
    const std::vector<hsize_t> extent(of_file.begin(), of_file.end());
    OSCAR_CHECK_EQ(extent.size(), made.shape.size());
    const Hdf5Handle source(H5Screate_simple(rank, extent.data(), nullptr));
    ready =
        ready &&
        H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(),
                            nullptr) >= 0 &&
        H5Pset_virtual(creation.get(), space.get(), file.c_str(), name.c_str(), source.get()) >= 0;
    start[0] += extent[0];
  }
  OSCAR_CHECK_EQ(start[0], made.shape[0]);
  ready = ready && H5Sselect_all(space.get()) >= 0;
  state_->Require(ready, "prepare dataset", name);
  made.handle = Hdf5Handle(H5Dcreate2(state_->hdf5.get(), name.c_str(), Hdf5FileType(type),
                                      space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT));
  state_->Require(made.handle.valid(), "create dataset", name);
  made.rows_written = made.shape[0];
  OSCAR_CHECK(state_->datasets.emplace(name, std::move(made)).second);
}

void Hdf5Writer::WriteRaw(std::string_view dataset, Hdf5Type type, int64_t first_row,
                          const void* values, size_t count) {
  const Hdf5Lock lock;
  const std::string name = NormalizedHdf5Path(dataset);
  const auto it = state_->datasets.find(name);
  OSCAR_CHECK(it != state_->datasets.end());
  State::Dataset& target = it->second;
  OSCAR_CHECK_EQ(Hdf5TypeName(type), Hdf5TypeName(target.type));
  hsize_t row_values = 1;
  for (size_t i = 1; i < target.shape.size(); ++i) row_values *= target.shape[i];
  OSCAR_CHECK_LT(0u, row_values);
  OSCAR_CHECK_EQ(count % row_values, 0u);
  const hsize_t rows = count / row_values;
  OSCAR_CHECK_LE(0, first_row);
  OSCAR_CHECK_LE(static_cast<hsize_t>(first_row) + rows, target.shape[0]);
  if (rows == 0) return;
  OSCAR_CHECK(target.handle.valid());  // all its rows must already be written

  std::vector<hsize_t> start(target.shape.size(), 0), extent = target.shape;
  start[0] = static_cast<hsize_t>(first_row);
  extent[0] = rows;
  const int rank = static_cast<int>(extent.size());
  const Hdf5Handle memory(H5Screate_simple(rank, extent.data(), nullptr));
  const Hdf5Handle file(H5Screate_simple(rank, target.shape.data(), nullptr));
  const bool good = H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, start.data(), nullptr,
                                        extent.data(), nullptr) >= 0 &&
                    H5Dwrite(target.handle.get(), Hdf5FileType(type), memory.get(), file.get(),
                             H5P_DEFAULT, values) >= 0;
  state_->Require(good, "write dataset", name);
  target.rows_written += rows;
  if (target.rows_written == target.shape[0]) {
    const bool closed = target.handle.Reset();  // also frees its chunk cache
    state_->Require(closed, "close dataset", name);
  }
}

void Hdf5Writer::Commit() {
  const Hdf5Lock lock;
  OSCAR_CHECK_LE(0, state_->file.descriptor);
  for (const auto& [name, dataset] : state_->datasets)
    OSCAR_CHECK_EQ(dataset.rows_written, dataset.shape[0]);
  const bool flushed = H5Fflush(state_->hdf5.get(), H5F_SCOPE_LOCAL) >= 0;
  state_->Require(flushed, "flush", "/");
  const bool closed = state_->CloseHdf5();
  state_->Require(closed, "close", "/");
  const TemporaryFile finished{state_->file.path, std::exchange(state_->file.descriptor, -1)};
  PublishTemporary(finished, state_->path);
  state_->file.path.clear();
}

}  // namespace oscar
