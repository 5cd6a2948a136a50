// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lets HDF5 access a file through our own descriptor. The library cannot close a file after a
// failed write: it leaves half-closed objects behind and tries again at process exit. So this
// driver never reports a failure to the library. It remembers the first failure and drops all later
// writes; the library closes the file normally, and then the writer throws. The caller owns the
// descriptor.
#pragma once

#include <cstdint>

#include "capture/dump/hdf5_library.h"

namespace oscar {

struct Hdf5Sink {
  int descriptor = -1;
  int error = 0;              // errno of the first failure
  uint64_t error_offset = 0;  // byte offset in the file
  uint64_t error_size = 0;    // bytes that the failed write had
};

// Registers the driver and makes `access` (a file access property list) use it with `sink`, which
// must outlive the file. Returns the driver's handle, or an invalid handle.
Hdf5Handle UseHdf5Sink(hid_t access, Hdf5Sink* sink);

}  // namespace oscar
