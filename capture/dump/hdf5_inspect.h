// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks the whole tree of a file, object by object, before anything is read. Refuses links
// other than hard ones, named types, external storage, virtual storage other than rows of
// other files one after another, filters other than deflate, shuffle and fletcher32, foreign
// element types, variable-length data, references, and sizes that the stored bytes cannot
// account for.
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
  Hdf5DatasetInfo info;            // of a dataset
  std::set<std::string> children;  // for a group
  std::set<std::string> attributes;
  // For a dataset whose rows are those of the same dataset in files beside this one, in order:
  // their names and required shapes.
  std::vector<std::pair<std::string, Hdf5DatasetInfo>> sources;
};

// Returns objects by normalized path. `file_bytes` is the size of the file, and `file_name` names
// it in errors. Throws InputError. The caller must hold the lock.
std::map<std::string, Hdf5Object> InspectHdf5(hid_t file, uint64_t file_bytes,
                                              const std::string& file_name);

}  // namespace oscar
