// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The two tables of weight formats. One maps a quant_method to the reader of its
// quantization_config; the other maps a WeightFormat to the stored tensors that make up a weight. A
// new format needs a file here with one or both functions, a line in formats.cc, and its arithmetic
// in capture/model/run/dequantize_formats.cc. All shapes are checked against each other here,
// because device code reads the values later.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/formats/quantization_fields.h"
#include "capture/checkpoint/quantization_config.h"
#include "capture/checkpoint/weight_storage.h"

namespace oscar {

struct QuantizationMethod {
  std::string_view name;  // quant_method
  void (*read)(QuantizationFields& fields, QuantizationConfig& config);
};
std::span<const QuantizationMethod> QuantizationMethods();  // sorted by name

// Finds and checks the parts of one weight.
class PartFinder {
 public:
  PartFinder(const Checkpoint& checkpoint, std::string weight, const WeightScheme& scheme);

  const std::string& weight() const { return weight_; }  // name of the dense tensor
  std::string InModule(std::string_view name) const;     // "m." + name
  const WeightScheme& scheme() const { return storage_.scheme; }
  const Checkpoint& checkpoint() const { return checkpoint_; }

  bool Has(const std::string& name) const { return checkpoint_.Contains(name); }
  // Adds the stored tensor as a part of the weight. Throws InputError if it is missing or of
  // another type.
  const TensorInfo& Add(PartRole role, const std::string& name, std::initializer_list<DType> types);
  // Throws InputError unless the tensor has this shape (ignoring dimensions of 1 if `squeezed`).
  void Expect(const std::string& name, const std::vector<int64_t>& shape, bool squeezed = false);
  // Throws InputError unless the tensor has `rank` dimensions, none of them 0.
  void ExpectRank(const std::string& name, size_t rank);
  [[noreturn]] void Fail(const std::string& name, const std::string& problem) const;

  WeightStorage& storage() { return storage_; }

 private:
  const Checkpoint& checkpoint_;
  std::string weight_;
  WeightStorage storage_;
};

struct StorageFormat {
  WeightFormat format;
  std::string (*codes)(const PartFinder& finder);  // name of the tensor with the codes
  void (*find)(PartFinder& finder);                // fills finder.storage()
};
const StorageFormat& FindFormat(WeightFormat format);

// Defined in formats/*.cc.
void ReadFp8Config(QuantizationFields& fields, QuantizationConfig& config);
void ReadFbgemmConfig(QuantizationFields& fields, QuantizationConfig& config);
void ReadGptqConfig(QuantizationFields& fields, QuantizationConfig& config);
void ReadAwqConfig(QuantizationFields& fields, QuantizationConfig& config);
void ReadMxfp4Config(QuantizationFields& fields, QuantizationConfig& config);
void ReadCompressedTensorsConfig(QuantizationFields& fields, QuantizationConfig& config);
void ReadModelOptConfig(QuantizationFields& fields, QuantizationConfig& config);
// ConfigOfModelOptFile converts hf_quant_config.json to the quantization_config that ModelOpt
// writes into config.json. CheckSameModelOpt throws InputError if the two name different
// algorithms.
Json ConfigOfModelOptFile(const Json& file, std::string_view what);
void CheckSameModelOpt(const Json& config, const std::string& what, const Json& converted);

std::string ScaledCodes(const PartFinder& finder);
void FindScaled(PartFinder& finder);
std::string PackedCodes(const PartFinder& finder);
void FindPacked(PartFinder& finder);
std::string GptqCodes(const PartFinder& finder);
void FindGptq(PartFinder& finder);
void FindGptqZeros(PartFinder& finder, const std::string& zeros);  // needs storage().shape
void FindAwq(PartFinder& finder);
std::string Mxfp4Codes(const PartFinder& finder);
void FindMxfp4(PartFinder& finder);
std::string Nvfp4Codes(const PartFinder& finder);
void FindNvfp4(PartFinder& finder);

inline constexpr int64_t kNvfp4Group = 16;  // values per scale

int64_t CeilDivide(int64_t a, int64_t b);

}  // namespace oscar
