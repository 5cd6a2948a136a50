// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of .pt schemas. A row has functions that recognize a schema by its content and read it;
// add a schema by adding a row. Trap: rows are tried in order, so more specific schemas come first.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "export/formats/rotation_file.h"

namespace oscar {

struct RotationSchema {
  std::string_view holds;  // the text for messages that list what is supported
  bool (*matches)(const PtValue& root);
  RotationFile (*read)(const PtFile& file);
};
std::span<const RotationSchema> RotationSchemas();

// Reads each tensor of a file once, even if several layers refer to it.
class TensorCache {
 public:
  explicit TensorCache(const PtFile& file) : file_(file) {}
  FloatTensorPtr Get(const PtTensor& tensor, std::string_view what);

 private:
  const PtFile& file_;
  std::map<std::string, FloatTensorPtr> tensors_;
};

// Return a member of `dict`, which error messages call `where`. They throw InputError for a member
// of the wrong type, or a required one that is missing. A missing optional member is null or empty.
const PtTensor& TensorField(const PtDict& dict, const char* key, std::string_view where);
FloatTensorPtr RequiredTensor(const PtDict& dict, const char* key, TensorCache* cache,
                              std::string_view where);
FloatTensorPtr OptionalTensor(const PtDict& dict, const char* key, TensorCache* cache,
                              std::string_view where);
int64_t IntField(const PtDict& dict, const char* key, std::string_view where);
std::string OptionalString(const PtDict& dict, const char* key, std::string_view where);
Json OptionalDict(const PtDict& dict, const char* key, std::string_view where);  // null if absent
const PtDict* DictMember(const PtValue& value, const char* key);
// Returns the first entry of the "layers" dict, or null. Schemas with layers are recognized by it.
const PtDict* FirstLayer(const PtValue& root);

// Calls visit(layer_id, entry, where) for each entry of the "layers" dict in file order, after
// checking it. Throws InputError if the dict is empty, a key is not a layer id, or the `layer_id`
// of an entry differs from its key.
using LayerVisitor =
    std::function<void(int64_t layer_id, const PtDict& entry, const std::string& where)>;
void ForEachLayer(const PtFile& file, const PtDict& layers, const LayerVisitor& visit);
// Both throw InputError. A layer id is an int, or its decimal text without leading zeros.
void CheckLayerCount(size_t count, std::string_view where);  // for more than 4,096 layers
int64_t CheckedLayerId(const PtKey& key, std::string_view where);

// Readers of the schemas. Each is in its own file.
bool MatchesMoments(const PtValue& root);
RotationFile ReadMoments(const PtFile& file);
bool MatchesLayers(const PtValue& root);
RotationFile ReadLayers(const PtFile& file);
bool MatchesMlaLayer(const PtValue& root);
RotationFile ReadMlaLayer(const PtFile& file);
bool MatchesFlat(const PtValue& root);
RotationFile ReadFlat(const PtFile& file);
bool MatchesStacked(const PtValue& root);
RotationFile ReadStacked(const PtFile& file);

}  // namespace oscar
