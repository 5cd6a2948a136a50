// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/dump/hdf5_driver.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "capture/files/posix_file.h"  // WriteFullyAt

namespace oscar {
namespace {

// The content of the property list. HDF5 copies its bytes.
struct DriverInfo {
  Hdf5Sink* sink;
};

// An open file. HDF5 requires that its own part comes first and passes back pointers to it.
struct OpenFile {
  H5FD_t base{};
  Hdf5Sink* sink = nullptr;
  haddr_t end_of_allocation = 0;  // bytes
  haddr_t end_of_file = 0;        // bytes
};

OpenFile* Self(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* Self(const H5FD_t* file) { return reinterpret_cast<const OpenFile*>(file); }

void Record(Hdf5Sink* sink, int error, uint64_t offset, uint64_t size) {
  if (sink->error != 0 || error == 0) return;
  sink->error = error;
  sink->error_offset = offset;
  sink->error_size = size;
}

H5FD_t* Open(const char*, unsigned, hid_t access, haddr_t) {
  const auto* const info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto* const file = new OpenFile;
  file->sink = info->sink;
  return &file->base;
}

herr_t Close(H5FD_t* file) {
  delete Self(file);
  return 0;
}

herr_t Query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t GetEndOfAllocation(const H5FD_t* file, H5FD_mem_t) { return Self(file)->end_of_allocation; }

herr_t SetEndOfAllocation(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  Self(file)->end_of_allocation = address;
  return 0;
}

haddr_t GetEndOfFile(const H5FD_t* file, H5FD_mem_t) { return Self(file)->end_of_file; }

herr_t Read(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  auto* out = static_cast<std::byte*>(buffer);
  Hdf5Sink* const sink = Self(base)->sink;
  while (size > 0) {
    const ssize_t count = pread(sink->descriptor, out, size, static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Record(sink, errno, address, size);
    if (count <= 0) break;
    out += count;
    address += static_cast<haddr_t>(count);
    size -= static_cast<size_t>(count);
  }
  std::memset(out, 0, size);  // past the end of the file, like HDF5's own drivers
  return 0;
}

herr_t Write(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* buffer) {
  OpenFile* const file = Self(base);
  file->end_of_file = std::max<haddr_t>(file->end_of_file, address + size);
  if (file->sink->error != 0) return 0;
  const std::span bytes(static_cast<const std::byte*>(buffer), size);
  Record(file->sink, WriteFullyAt(file->sink->descriptor, bytes, address), address, size);
  return 0;
}

herr_t Truncate(H5FD_t* base, hid_t, hbool_t) {
  OpenFile* const file = Self(base);
  if (file->end_of_allocation == file->end_of_file) return 0;
  const auto size = static_cast<off_t>(file->end_of_allocation);
  if (file->sink->error == 0 && ftruncate(file->sink->descriptor, size) != 0) {
    Record(file->sink, errno, file->end_of_allocation, 0);
  }
  file->end_of_file = file->end_of_allocation;
  return 0;
}

}  // namespace

Hdf5Handle UseHdf5Sink(hid_t access, Hdf5Sink* sink) {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 14, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(511);  // reserved for tests and private use
#endif
  driver.name = "oscar_sink";
  driver.maxaddr = static_cast<haddr_t>(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(DriverInfo);
  driver.open = Open;
  driver.close = Close;
  driver.query = Query;
  driver.get_eoa = GetEndOfAllocation;
  driver.set_eoa = SetEndOfAllocation;
  driver.get_eof = GetEndOfFile;
  driver.read = Read;
  driver.write = Write;
  driver.truncate = Truncate;
  Hdf5Handle id(H5FDregister(&driver));
  const DriverInfo info{sink};
  if (!id.valid() || H5Pset_driver(access, id.get(), &info) < 0) return Hdf5Handle();
  return id;
}

}  // namespace oscar
