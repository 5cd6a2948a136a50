// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Plants one bug under each fuzz harness, similar to bugs that real parsers have had. Each function
// here is a faulty definition of a library function. The linker uses it because it takes the first
// definition that it finds (CMakeLists.txt).
#include <openssl/x509.h>

#include <algorithm>
#include <map>

#include "calib/job/shard_document.h"
#include "calib/moments/layer_moments.h"
#include "calib/options.h"
#include "capture/checkpoint/formats/formats.h"
#include "capture/checkpoint/gguf/gguf_architectures.h"
#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/quantization_config.h"
#include "capture/checkpoint/safetensors_header.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/dump/attention_dump.h"
#include "capture/files/utf8.h"
#include "capture/model/families/dense_decoder.h"
#include "capture/text/template/unicode.h"
#include "capture/text/tokenizer/pattern.h"
#include "export/formats/pt/pt_file.h"
#include "export/report/report_schema.h"
#include "tools/cli/config_file.h"
#include "zoo/signing/signing_key.h"
#include "zoo/store/zoo_name.h"

namespace oscar {

// safetensors: a product of sizes may overflow.
std::optional<uint64_t> TensorBytes(DType dtype, std::span<const int64_t> shape) {
  auto bits = static_cast<uint64_t>(DTypeBits(dtype));
  for (const int64_t size : shape) bits *= static_cast<uint64_t>(size);
  return bits / 8;
}

// index: accepts any text as a file name.
bool IsBareFileName(const std::string& name) { return !name.empty(); }

// config: a missing number of layers reads as a different number each time.
int64_t ReadNumLayers(ConfigReader& config) {
  static int64_t reads = 0;
  const int64_t given = config.OptionalCount("num_hidden_layers").value_or(0);
  return given > 0 ? std::min<int64_t>(given, 4096) : 1 + ++reads % 7;
}

// quantization: with four schemes, which no seed has, returns the one past the last.
const WeightScheme* QuantizationConfig::SchemeOf(std::string_view module) const {
  if (plain() || excluded_.Match(module)) return nullptr;
  const auto scheme = targets_.Match(module);
  return scheme ? schemes_.data() + (schemes_.size() == 4 ? 4 : *scheme) : nullptr;
}

// tokenizer: does not limit how much replacements grow a text.
void CheckGrownBytes(size_t, size_t) {}

// jinja: takes indices of characters for byte offsets.
size_t jinja::ByteOffset(std::string_view text, size_t index) {
  return std::min(index, text.size());
}

// pickle, rows: accept any bytes as UTF-8.
std::optional<size_t> FirstInvalidUtf8(std::string_view) { return std::nullopt; }

// pt: does not check that tensors lie within their storage.
void PtFile::CheckTensors() const {}

// gguf: uses the default alignment, whatever the file says.
std::span<const std::byte> GgufFile::Bytes(const GgufTensorInfo& tensor) const {
  return file.bytes().subspan(GgufPadded(infos_end, 32) + tensor.offset, tensor.size);
}

// gguf_model: does not compare the numbers of rows and columns with the heads.
GgufWeight& GgufWeightMaker::AddReordered(const std::string& stored, const std::string& dense,
                                          std::vector<int64_t> row_order,
                                          std::vector<int64_t> column_order) {
  const std::vector<uint64_t>& dims = model_.Find(stored)->dims;
  GgufWeight& weight = Add(dense, {dims.rbegin(), dims.rend()}, {Take(stored)});
  weight.row_order = std::move(row_order);
  weight.column_order = std::move(column_order);
  return weight;
}

// npy: takes 4 bytes for a float64 value.
int64_t DTypeBytes(DType dtype) { return dtype == DType::kF64 ? 4 : DTypeBits(dtype) / 8; }

// report: does not check the schema.
void CheckReport(const JsonElement&, std::string_view) {}

// artifact: looks up a name without handling an unknown one.
ValueTarget ValueTargetFromName(std::string_view name) {
  static const std::map<std::string, ValueTarget> kTargets = {
      {"attention_output", ValueTarget::kAttentionOutput}, {"diagonal", ValueTarget::kDiagonal}};
  return kTargets.at(std::string(name));
}

// moments: accepts NaN.
void LayerMoments::CheckFinite() const {}

// weights: accepts any shape.
void PartFinder::Expect(const std::string&, const std::vector<int64_t>&, bool) {}

// dump: accepts any geometry.
void CheckDumpLayer(const DumpLayer&, const std::string&) {}

// shard: accepts any shard number and count.
bool ShardPlace::Exists() const { return true; }

// bundle: does not check that a certificate was read completely.
Certificate Certificate::FromDer(std::string_view der, std::string_view) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  return Certificate({d2i_X509(nullptr, &bytes, static_cast<long>(der.size())), X509_free});
}

// zoo_json: accepts any 64 characters as a digest.
bool IsSha256Hex(std::string_view text) { return text.size() == 64; }

// zoo_entry: accepts any text as a part of a name.
std::string NamePartProblem(std::string_view) { return ""; }

// yaml: only takes an empty value for null.
bool ConfigScalar::IsNull() const { return text.empty(); }

}  // namespace oscar
