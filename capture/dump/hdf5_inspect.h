// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks all objects of a file before anything is read. These are refused:
//   links other than hard links, and named types
//   external storage; virtual storage, unless rows come from other files one after another
//   filters other than deflate, shuffle and fletcher32
//   other element types than ours, variable-length data, references
//   sizes that exceed the stored bytes
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/dump/hdf5_library.h"

namespace oscar {

struct Hdf5Object {
  bool is_group = false;
  Hdf5DatasetInfo info;            // for a dataset
  std::set<std::string> children;  // for a group
  std::set<std::string> attributes;
  // For a virtual dataset: the names of its source files, in order, and the type and shape that the
  // dataset must have in each.
  std::vector<std::pair<std::string, Hdf5DatasetInfo>> sources;
};

// Returns objects by normalized path. `file_bytes` is the size of the file; `file_name` is used in
// errors. Throws InputError. The caller must hold the lock.
std::map<std::string, Hdf5Object> InspectHdf5(hid_t file, uint64_t file_bytes,
                                              const std::string& file_name);

}  // namespace oscar
