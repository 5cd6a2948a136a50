// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole tree of a file, checked object by object before anything is read. Refused: every link
// but a hard one, named types, external storage, virtual storage but rows of other files one after
// another, filters other than deflate, shuffle
// and fletcher32, element types that are not ours, variable-length data, references, and sizes the
// stored bytes cannot account for.
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
  std::set<std::string> children;  // of a group
  std::set<std::string> attributes;
  // Of a dataset whose rows are those of the same dataset of files beside this one, in order: their
  // names, and what they must have.
  std::vector<std::pair<std::string, Hdf5DatasetInfo>> sources;
};

// By normalized path. `file_bytes` is the size of the file, `file_name` names it in errors. Throws
// InputError. The caller holds the lock.
std::map<std::string, Hdf5Object> InspectHdf5(hid_t file, uint64_t file_bytes,
                                              const std::string& file_name);

}  // namespace oscar
