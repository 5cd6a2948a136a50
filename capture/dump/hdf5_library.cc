// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/dump/hdf5_library.h"

#include <array>
#include <bit>

#include "capture/files/quote.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// The library's state is global to the process, and so is its lock.
std::recursive_mutex& LibraryMutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

constexpr std::array<Hdf5Type, 7> kTypes = {
    Hdf5Type::kFloat64, Hdf5Type::kFloat32, Hdf5Type::kFloat16, Hdf5Type::kInt64,
    Hdf5Type::kInt32,   Hdf5Type::kUInt16,  Hdf5Type::kUInt8};

// HDF5 1.10 has no float16: 1 sign bit, 5 exponent bits from bit 10, 10 mantissa bits. This is the
// type that h5py stores for numpy's float16.
hid_t MakeFloat16() {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  OSCAR_CHECK(H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0);
  OSCAR_CHECK(H5Tset_size(type, 2) >= 0);
  OSCAR_CHECK(H5Tset_ebias(type, 15) >= 0);
  return type;
}

}  // namespace

static_assert(std::endian::native == std::endian::little,
              "values are stored as they lie in memory");

bool Hdf5Handle::Reset() {
  const hid_t id = std::exchange(id_, -1);
  if (id < 0) return true;
  switch (H5Iget_type(id)) {
    case H5I_FILE:
      return H5Fclose(id) >= 0;
    case H5I_GROUP:
    case H5I_DATASET:
    case H5I_DATATYPE:
      return H5Oclose(id) >= 0;
    case H5I_DATASPACE:
      return H5Sclose(id) >= 0;
    case H5I_ATTR:
      return H5Aclose(id) >= 0;
    case H5I_GENPROP_LST:
      return H5Pclose(id) >= 0;
    case H5I_VFL:
      return H5FDunregister(id) >= 0;
    default:
      return false;
  }
}

Hdf5Lock::Hdf5Lock() : guard_(LibraryMutex()) { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

std::string Hdf5Reason() {
  std::string reason;
  const auto keep_last = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    if (error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_last, &reason);
  return Escaped(reason);
}

std::string_view Hdf5TypeName(Hdf5Type type) {
  switch (type) {
    case Hdf5Type::kFloat64:
      return "float64";
    case Hdf5Type::kFloat32:
      return "float32";
    case Hdf5Type::kFloat16:
      return "float16";
    case Hdf5Type::kInt64:
      return "int64";
    case Hdf5Type::kInt32:
      return "int32";
    case Hdf5Type::kUInt16:
      return "uint16";
    case Hdf5Type::kUInt8:
      return "uint8";
  }
  OSCAR_CHECK(false);
}

hid_t Hdf5FileType(Hdf5Type type) {
  switch (type) {
    case Hdf5Type::kFloat64:
      return H5T_IEEE_F64LE;
    case Hdf5Type::kFloat32:
      return H5T_IEEE_F32LE;
    case Hdf5Type::kFloat16: {
      static const hid_t float16 = MakeFloat16();  // lives as long as the library
      return float16;
    }
    case Hdf5Type::kInt64:
      return H5T_STD_I64LE;
    case Hdf5Type::kInt32:
      return H5T_STD_I32LE;
    case Hdf5Type::kUInt16:
      return H5T_STD_U16LE;
    case Hdf5Type::kUInt8:
      return H5T_STD_U8LE;
  }
  OSCAR_CHECK(false);
}

int64_t Hdf5TypeBytes(Hdf5Type type) {
  switch (type) {
    case Hdf5Type::kFloat64:
    case Hdf5Type::kInt64:
      return 8;
    case Hdf5Type::kFloat32:
    case Hdf5Type::kInt32:
      return 4;
    case Hdf5Type::kFloat16:
    case Hdf5Type::kUInt16:
      return 2;
    case Hdf5Type::kUInt8:
      return 1;
  }
  OSCAR_CHECK(false);
}

std::optional<Hdf5Type> FromHdf5FileType(hid_t stored) {
  for (const Hdf5Type type : kTypes) {
    if (H5Tequal(stored, Hdf5FileType(type)) > 0) return type;
  }
  return std::nullopt;
}

std::string NormalizedHdf5Path(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return "/" + std::string(path);
}

}  // namespace oscar
