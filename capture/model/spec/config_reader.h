// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads config.json so that no field goes unnoticed: every access marks its key, and Finish()
// checks all other keys against the tables of config_fields.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/object_fields.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

class ConfigReader final : public ObjectFields {
 public:
  // Keeps references to `object` and the checkpoint. Throws InputError if `object` is not a JSON
  // object. `wrapped`: `object` is the text part of a multimodal model.
  ConfigReader(const Json& object, std::string what, const SpecOptions& options = {},
               bool wrapped = false);

  // Returns the member, or nullptr if it is missing or empty (IsEmptyMember).
  const Json* Find(std::string_view key) override;
  // Sets the value of a missing key (but not of null) in this family. The first default wins.
  void Default(std::string_view key, Json value) {
    defaults_.try_emplace(std::string(key), std::move(value));
  }
  // Gives keys that a text_config omits the defaults of transformers' class for this model type.
  void DefaultToReference(std::string_view model_type);

  // Sets the value of a key, whatever the file says; null removes it.
  void Override(std::string_view key, Json value) {
    overrides_[std::string(key)] = std::move(value);
  }

  // Declares another name for `key`, used if `key` is missing. Both may be present if they agree.
  void SecondName(std::string_view key, std::string_view other);

  bool Has(std::string_view key) const { return object_.contains(key); }  // whether null or not

  // Return an integer in [1, 2^24], or in [1, 2^31] for Positions. The limits keep products of two
  // sizes from overflowing.
  int64_t Size(std::string_view key);
  std::optional<int64_t> OptionalSize(std::string_view key);
  std::optional<int64_t> OptionalCount(std::string_view key);  // at least 0
  int64_t Positions(std::string_view key);
  // Returns a finite number > 0.
  double Positive(std::string_view key);
  std::optional<double> OptionalPositive(std::string_view key);
  std::optional<double> OptionalNumber(std::string_view key);  // finite

  // Throws unless a key is missing or has this value.
  void Require(std::string_view key, const Json& value);

  // Marks keys without effect in this family as read.
  void Ignore(std::initializer_list<std::string_view> keys) {
    read_.insert(keys.begin(), keys.end());
  }

  // Ignores, notes or refuses every key that was not read; no other function does. `model_type`:
  // the type whose class in transformers stores the fields.
  FieldNotes Finish(std::string_view model_type,
                    bool (*also_irrelevant)(std::string_view key) = nullptr) const;
  // Adds the notes of an object inside this one. Finish returns them with its own notes.
  void AddNotes(const FieldNotes& notes, const std::string& prefix);
  UnknownConfig unknown_config() const { return unknown_config_; }

  // Sets unusual tensor name parts of a family: "transformer." + "h." instead of "layers.".
  void NameLayers(std::string prefix, std::string layers) {
    prefix_ = std::move(prefix);
    layers_ = std::move(layers);
  }
  // The common prefix of the text model's tensors: "model." or a wrapper's prefix.
  const std::string& prefix() const { return prefix_; }
  std::string LayerPrefix(int64_t layer_id) const;  // "model.layers.3."
  std::string HeadName() const;                     // "lm_head.weight"
  // Stores: whether the checkpoint has that weight, in any format. StoresPrefix: whether it has a
  // tensor with that prefix. Both are false without a checkpoint; a family then uses its usual
  // names.
  bool Stores(std::string_view name) const;
  bool StoresPrefix(std::string_view begin) const;
  // Returns the shape of the tensor with exactly this name; empty if there is none.
  std::vector<int64_t> StoredShape(const std::string& name) const;
  bool knows_names() const { return checkpoint_ != nullptr; }

 private:
  const Checkpoint* checkpoint_;
  UnknownConfig unknown_config_;
  FieldNotes notes_;
  std::vector<std::string> names_;  // the checkpoint's tensors, sorted
  std::string prefix_, layers_ = "layers.";
  std::map<std::string, Json, std::less<>> defaults_, overrides_;
};

}  // namespace oscar
