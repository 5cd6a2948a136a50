// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole tree of a file, checked object by object before anything is read. Refused: every link
// but a hard one, named types, virtual and external storage, filters other than deflate, shuffle
// and fletcher32, element types that are not ours, variable-length data, references, and sizes the
// stored bytes cannot account for.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "capture/dump/hdf5_library.h"

namespace oscar {

struct Hdf5Object {
  bool is_group = false;
  Hdf5DatasetInfo info;            // of a dataset
  std::set<std::string> children;  // of a group
  std::set<std::string> attributes;
};

// By normalized path. `file_bytes` is the size of the file, `file_name` names it in errors. Throws
// InputError. The caller holds the lock.
std::map<std::string, Hdf5Object> InspectHdf5(hid_t file, uint64_t file_bytes,
                                              const std::string& file_name);

}  // namespace oscar
