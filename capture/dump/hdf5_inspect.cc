// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/dump/hdf5_inspect.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kMaxObjects = 100'000;
constexpr size_t kMaxDepth = 16;         // nested groups; stops cycles of hard links
constexpr size_t kMaxAttributes = 1000;  // per object
constexpr int kMaxFilters = 8;
// Deflate cannot shrink zeros by more than a factor of about 1032.
constexpr uint64_t kMaxDeflateRatio = 1040;

class Inspector {
 public:
  Inspector(uint64_t file_bytes, const std::string& file_name)
      : file_bytes_(file_bytes), file_name_(file_name) {}

  std::map<std::string, Hdf5Object> Take() { return std::move(objects_); }

  void Visit(hid_t object, const std::string& path, size_t depth) {
    if (objects_.size() >= kMaxObjects) Refuse(path, "too many objects");
    if (depth > kMaxDepth) Refuse(path, "groups are nested too deeply or form a cycle");
    Hdf5Object& entry = objects_[path];
    switch (H5Iget_type(object)) {
      case H5I_GROUP:
        entry.is_group = true;
        break;
      case H5I_DATASET:
        entry.info = CheckDataset(object, path, entry.sources);
        break;
      default:
        Refuse(path, "is neither a group nor a dataset");
    }
    entry.attributes = CheckAttributes(object, path);
    if (entry.is_group) VisitChildren(object, path, depth);
  }

 private:
  [[noreturn]] void Refuse(const std::string& path, const std::string& why) const {
    throw InputError(fmt::format("{}: {}: {}", file_name_, Escaped(path), why));
  }
  void Require(bool good, const std::string& path, std::string_view doing) const {
    if (!good) Refuse(path, fmt::format("cannot {}: HDF5: {}", doing, Hdf5Reason()));
  }

  void VisitChildren(hid_t group, const std::string& path, size_t depth) {
    H5G_info_t info{};
    Require(H5Gget_info(group, &info) >= 0, path, "read the group");
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      std::array<char, 1024> buffer;
      const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i,
                                                buffer.data(), buffer.size(), H5P_DEFAULT);
      Require(length >= 0, path, "read a name in the group");
      const std::string name(buffer.data(), std::min<size_t>(length, buffer.size() - 1));
      if (static_cast<size_t>(length) >= buffer.size() || name.empty() || name == "." ||
          name.find('/') != name.npos) {
        Refuse(path, fmt::format("contains the invalid name {}", Quoted(name)));
      }
      const std::string child = path == "/" ? "/" + name : path + "/" + name;
      H5L_info_t link{};
      Require(H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) >= 0, child, "read the link");
      if (link.type != H5L_TYPE_HARD) {
        Refuse(child, fmt::format("is {} link; only objects in the file itself are read",
                                  link.type == H5L_TYPE_SOFT       ? "a soft"
                                  : link.type == H5L_TYPE_EXTERNAL ? "an external"
                                                                   : "a user-defined"));
      }
      const Hdf5Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT));
      Require(object.valid(), child, "open the object");
      Visit(object.get(), child, depth + 1);
      objects_[path].children.insert(name);
    }
  }

  using Sources = std::vector<std::pair<std::string, Hdf5DatasetInfo>>;

  Hdf5DatasetInfo CheckDataset(hid_t dataset, const std::string& path, Sources& sources) const {
    Hdf5DatasetInfo info;
    const Hdf5Handle type(H5Dget_type(dataset));
    Require(type.valid(), path, "read the element type");
    const auto known = FromHdf5FileType(type.get());
    if (!known) {
      Refuse(
          path,
          "element type is not one of float64, float32, float16, int64, int32, uint16, uint8 (all "
          "little-endian)");
    }
    info.type = *known;
    const Hdf5Handle space(H5Dget_space(dataset));
    Require(space.valid(), path, "read the shape");
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 1 || rank > static_cast<int>(kHdf5MaxRank)) {
      Refuse(path, fmt::format("has {} dimensions, expected 1 to {}", rank, kHdf5MaxRank));
    }
    std::vector<hsize_t> shape(rank);
    Require(H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr) == rank, path,
            "read the shape");
    int64_t bytes = Hdf5TypeBytes(info.type);
    bool empty = false;
    for (const hsize_t dim : shape) {
      if (dim > static_cast<hsize_t>(std::numeric_limits<int64_t>::max()) ||
          (dim != 0 && __builtin_mul_overflow(bytes, static_cast<int64_t>(dim), &bytes))) {
        Refuse(path, fmt::format("shape [{}] overflows", fmt::join(shape, ", ")));
      }
      empty = empty || dim == 0;
      info.shape.push_back(static_cast<int64_t>(dim));
    }
    if (!CheckSources(dataset, path, info, sources))
      CheckStorage(dataset, path, shape, empty ? 0 : static_cast<uint64_t>(bytes));
    return info;
  }

  // Whether a dataset is virtual in the way that Hdf5Writer::DeclareVirtual makes it. Other virtual
  // datasets are refused.
  bool CheckSources(hid_t dataset, const std::string& path, const Hdf5DatasetInfo& info,
                    Sources& sources) const {
    constexpr size_t kMaxSources = 4096;
    const Hdf5Handle creation(H5Dget_create_plist(dataset));
    Require(creation.valid(), path, "read the storage layout");
    if (H5Pget_layout(creation.get()) != H5D_VIRTUAL) return false;
    size_t count = 0;
    Require(H5Pget_virtual_count(creation.get(), &count) >= 0, path, "count the sources");
    if (count > kMaxSources)
      Refuse(path,
             fmt::format("is virtual with {} sources, expected at most {}", count, kMaxSources));
    const auto name_of = [&](auto get, size_t i) {
      std::array<char, 1024> buffer;
      const ssize_t length = get(creation.get(), i, buffer.data(), buffer.size());
      Require(length >= 0 && static_cast<size_t>(length) < buffer.size(), path, "name a source");
      return std::string(buffer.data(), static_cast<size_t>(length));
    };
    const size_t rank = info.shape.size();
    int64_t rows = 0;
    for (size_t i = 0; i < count; ++i) {
      const std::string file = name_of(H5Pget_virtual_filename, i);
      if (file.empty() || file == "." || file == ".." || file.find_first_of("/%") != file.npos)
        Refuse(path,
               fmt::format("is virtual with source {}, which is not a file in the same directory",
                           Quoted(file)));
      if (name_of(H5Pget_virtual_dsetname, i) != path)
        Refuse(path, fmt::format("is virtual, but its source in {} is a dataset of another name",
                                 Quoted(file)));
      const Hdf5Handle to(H5Pget_virtual_vspace(creation.get(), i)),
          from(H5Pget_virtual_srcspace(creation.get(), i));
      std::array<hsize_t, kHdf5MaxRank> first{}, last{};
      Require(H5Sget_simple_extent_ndims(to.get()) == static_cast<int>(rank) &&
                  H5Sget_select_bounds(to.get(), first.data(), last.data()) >= 0,
              path, "read the position of a source");
      Hdf5DatasetInfo of_source{info.type, {}};
      hssize_t values = 1;
      bool fits = true;
      for (size_t d = 0; d < rank && fits; ++d) {
        fits = first[d] == (d == 0 ? static_cast<hsize_t>(rows) : 0) && last[d] >= first[d] &&
               last[d] < static_cast<hsize_t>(info.shape[d]);
        of_source.shape.push_back(static_cast<int64_t>(last[d] - first[d] + 1));
        values *= of_source.shape.back();
      }
      // The whole source must be selected; its shape is read from its own file.
      if (!fits || H5Sget_select_npoints(to.get()) != values ||
          H5Sget_select_type(from.get()) != H5S_SEL_ALL)
        Refuse(path, "is virtual, but its sources are not consecutive rows");
      rows += of_source.shape[0];
      sources.emplace_back(file, std::move(of_source));
    }
    if (rows != info.shape[0])
      Refuse(path, fmt::format("is virtual, and its sources have {} rows instead of {}", rows,
                               info.shape[0]));
    return true;
  }

  // `bytes` follows from the shape; the file must contain them.
  void CheckStorage(hid_t dataset, const std::string& path, const std::vector<hsize_t>& shape,
                    uint64_t bytes) const {
    const Hdf5Handle creation(H5Dget_create_plist(dataset));
    Require(creation.valid(), path, "read the storage layout");
    if (H5Pget_external_count(creation.get()) != 0) Refuse(path, "is stored in an external file");
    const bool deflated = CheckFilters(creation.get(), path);
    const H5D_layout_t layout = H5Pget_layout(creation.get());
    if (layout != H5D_CONTIGUOUS && layout != H5D_COMPACT && layout != H5D_CHUNKED) {
      Refuse(path, "has storage that is neither contiguous, compact nor chunked");
    }
    if (bytes == 0) return;
    const uint64_t ratio = deflated ? kMaxDeflateRatio : 1;
    if (bytes / ratio > file_bytes_) {
      Refuse(path, fmt::format("shape [{}] needs {} bytes, but the file has {}",
                               fmt::join(shape, ", "), bytes, file_bytes_));
    }
    if (layout == H5D_CHUNKED) CheckChunks(creation.get(), path, shape);
    const uint64_t stored = H5Dget_storage_size(dataset);
    if (stored > file_bytes_ || bytes / ratio > stored) {
      Refuse(path, fmt::format("shape [{}] needs {} bytes, but {} are stored; the data was never "
                               "written or is damaged",
                               fmt::join(shape, ", "), bytes, stored));
    }
  }

  // Bounds the chunk index and the buffer for one chunk before HDF5 reads and allocates them.
  void CheckChunks(hid_t creation, const std::string& path,
                   const std::vector<hsize_t>& shape) const {
    std::array<hsize_t, kHdf5MaxRank> chunk{};
    const int rank = static_cast<int>(shape.size());
    Require(H5Pget_chunk(creation, rank, chunk.data()) == rank, path, "read the chunk shape");
    uint64_t chunks = 1;
    for (int i = 0; i < rank; ++i) {
      const bool fits = chunk[i] > 0 && chunk[i] <= shape[i];
      const uint64_t along = fits ? (shape[i] - 1) / chunk[i] + 1 : 0;
      if (!fits || __builtin_mul_overflow(chunks, along, &chunks) || chunks > file_bytes_) {
        Refuse(path, fmt::format("chunks of [{}] do not match shape [{}]",
                                 fmt::join(chunk.begin(), chunk.begin() + rank, ", "),
                                 fmt::join(shape, ", ")));
      }
    }
  }

  bool CheckFilters(hid_t creation, const std::string& path) const {
    bool deflated = false;
    const int count = H5Pget_nfilters(creation);
    if (count < 0 || count > kMaxFilters)
      Refuse(path, fmt::format("has {} filters, which is not supported", count));
    for (int i = 0; i < count; ++i) {
      unsigned flags = 0, config = 0;
      size_t num_values = 0;
      const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags,
                                                 &num_values, nullptr, 0, nullptr, &config);
      Require(filter >= 0, path, "read the filters");
      if (filter == H5Z_FILTER_DEFLATE && deflated) Refuse(path, "is deflated more than once");
      deflated = deflated || filter == H5Z_FILTER_DEFLATE;
      if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
          filter != H5Z_FILTER_FLETCHER32) {
        Refuse(path,
               fmt::format("uses filter {}; only deflate, shuffle and fletcher32 are supported",
                           static_cast<int>(filter)));
      }
    }
    return deflated;
  }

  std::set<std::string> CheckAttributes(hid_t object, const std::string& path) const {
    std::set<std::string> names;
    const int count = H5Aget_num_attrs(object);
    Require(count >= 0, path, "count the attributes");
    if (static_cast<size_t>(count) > kMaxAttributes) Refuse(path, "too many attributes");
    for (int i = 0; i < count; ++i) {
      const Hdf5Handle attribute(H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC,
                                                static_cast<hsize_t>(i), H5P_DEFAULT, H5P_DEFAULT));
      Require(attribute.valid(), path, "open an attribute");
      std::array<char, 1024> buffer;
      const ssize_t length = H5Aget_name(attribute.get(), buffer.size(), buffer.data());
      Require(length >= 0, path, "read the name of an attribute");
      if (static_cast<size_t>(length) >= buffer.size())
        Refuse(path, "has an attribute whose name is too long");
      const std::string name(buffer.data(), static_cast<size_t>(length));
      CheckAttribute(attribute.get(), fmt::format("{} attribute {}", path, name));
      names.insert(name);
    }
    return names;
  }

  void CheckAttribute(hid_t attribute, const std::string& label) const {
    const Hdf5Handle type(H5Aget_type(attribute));
    const Hdf5Handle space(H5Aget_space(attribute));
    Require(type.valid() && space.valid(), label, "read the type");
    const H5T_class_t kind = H5Tget_class(type.get());
    if (kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_STRING) {
      Refuse(label, "contains neither numbers nor strings of fixed length");
    }
    if (kind == H5T_STRING && H5Tis_variable_str(type.get()) != 0) {
      Refuse(label, "is a string of variable length; only fixed length is supported");
    }
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 0 || rank > 1)
      Refuse(label, fmt::format("has {} dimensions, expected at most 1", rank));
    const hssize_t count = H5Sget_simple_extent_npoints(space.get());
    const uint64_t width = H5Tget_size(type.get());
    if (count < 0 || width == 0 || static_cast<uint64_t>(count) > file_bytes_ / width) {
      Refuse(label, fmt::format("has {} values of {} bytes, which exceed the file", count, width));
    }
  }

  uint64_t file_bytes_;
  const std::string& file_name_;
  std::map<std::string, Hdf5Object> objects_;
};

}  // namespace

std::map<std::string, Hdf5Object> InspectHdf5(hid_t file, uint64_t file_bytes,
                                              const std::string& file_name) {
  const Hdf5Handle root(H5Oopen(file, "/", H5P_DEFAULT));
  if (!root.valid()) {
    throw InputError(
        fmt::format("{}: cannot open the root group: HDF5: {}", file_name, Hdf5Reason()));
  }
  Inspector inspector(file_bytes, file_name);
  inspector.Visit(root.get(), "/", 0);
  return inspector.Take();
}

}  // namespace oscar
