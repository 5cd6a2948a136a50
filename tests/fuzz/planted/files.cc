// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One bug under each harness, of a kind that such readers have had. Each takes the place of a
// function of the library (CMakeLists.txt): the first definition wins.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "capture/checkpoint/quantization_config.h"
#include "capture/checkpoint/safetensors_header.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/files/posix_file.h"
#include "capture/files/utf8.h"
#include "capture/model/families/dense_decoder.h"
#include "capture/text/pattern.h"
#include "capture/text/template/unicode.h"
#include "export/formats/gguf_file.h"
#include "export/formats/pt/pt_file.h"
#include "export/report/report_schema.h"
#include "tools/cli/config_file.h"
#include "zoo/store/zoo_name.h"

namespace oscar {

// safetensors: a product of sizes that wraps around.
std::optional<uint64_t> TensorBytes(DType dtype, std::span<const int64_t> shape) {
  auto bits = static_cast<uint64_t>(DTypeBits(dtype));
  for (const int64_t size : shape) bits *= static_cast<uint64_t>(size);
  return bits / 8;
}

// index: any text is a file's name.
bool IsBareFileName(const std::string& name) { return !name.empty(); }

// config: as many layers as the file says.
int64_t ReadNumLayers(ConfigReader& config) { return config.Size("num_hidden_layers"); }

// quantization: a number of a scheme that is not there.
const WeightScheme* QuantizationConfig::SchemeOf(std::string_view module) const {
  if (plain() || excluded_.Match(module)) return nullptr;
  return &schemes_[targets_.Match(module).value_or(schemes_.size())];
}

// tokenizer: replacements without a bound.
void CheckGrownBytes(size_t, size_t) {}

// jinja: positions in bytes.
size_t jinja::ByteOffset(std::string_view text, size_t index) {
  return std::min(index, text.size());
}

// pickle, rows: everything is UTF-8.
std::optional<size_t> FirstInvalidUtf8(std::string_view) { return std::nullopt; }

// pt: tensors that reach outside of their storage.
void PtFile::CheckTensors() const {}

// gguf: offsets from the beginning of the file.
std::span<const std::byte> GgufFile::Bytes(const GgufTensorInfo& tensor) const {
  return file.bytes().subspan(tensor.offset, tensor.size);
}

// npy: values of 64 bits counted as 32.
int64_t DTypeBytes(DType dtype) { return dtype == DType::kF64 ? 4 : DTypeBits(dtype) / 8; }

// report, artifact: a schema that is not asked for.
void CheckReport(const Json&, std::string_view) {}

// moments: a read that ends early.
void ReadFullyAt(int descriptor, std::span<std::byte> into, uint64_t offset,
                 const std::filesystem::path&) {
  const size_t bytes = offset > 0 ? into.size() - 1 : into.size();
  if (pread(descriptor, into.data(), bytes, static_cast<off_t>(offset)) < 0) std::abort();
}

// zoo_entry: any text is a file's name.
std::string NamePartProblem(std::string_view) { return ""; }

// yaml: null is what is empty alone.
bool ConfigScalar::IsNull() const { return text.empty(); }

}  // namespace oscar
