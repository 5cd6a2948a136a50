// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/tensor_file.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capture/checkpoint/safetensors.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

DType FromScalarType(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return DType::kF32;
    case at::kBFloat16:
      return DType::kBF16;
    case at::kHalf:
      return DType::kF16;
    case at::kDouble:
      return DType::kF64;
    default:
      OSCAR_CHECK(false);
  }
}

std::string Describe(DType dtype, at::IntArrayRef shape) {
  return fmt::format("{} [{}]", DTypeName(dtype), fmt::join(shape, ", "));
}

}  // namespace

at::Tensor BytesOf(const at::Tensor& tensor) {
  return tensor.contiguous().view({-1}).view(at::kByte);
}

void WriteTensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  std::vector<SafetensorsWriter::Declaration> declarations;
  for (const auto& [name, tensor] : tensors)
    declarations.push_back({name, FromScalarType(tensor.scalar_type()), tensor.sizes().vec()});
  SafetensorsWriter writer(path, declarations);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor host = tensor.cpu().contiguous();
    writer.Write(name, {static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()});
  }
  writer.Commit();
}

void ReadTensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                 Remedy remedy) {
  const SafetensorsFile file = SafetensorsFile::Open(path);
  if (file.tensors().size() != tensors.size()) {
    throw InputError(fmt::format("{}: contains {} tensors, expected {}", path.string(),
                                 file.tensors().size(), tensors.size()),
                     remedy);
  }
  for (const auto& [name, tensor] : tensors) {
    const TensorView view = file.tensor(name);
    const DType dtype = FromScalarType(tensor.scalar_type());
    if (view.dtype != dtype || view.shape != tensor.sizes().vec()) {
      throw InputError(
          fmt::format("{}: {} is {}, expected {}", path.string(), name,
                      Describe(view.dtype, view.shape), Describe(dtype, tensor.sizes())),
          remedy);
    }
    if (view.data.empty()) continue;
    OSCAR_CHECK(tensor.is_contiguous());
    // Copies bytes, which need no alignment.
    BytesOf(tensor).copy_(at::from_blob(const_cast<std::byte*>(view.data.data()),
                                        {static_cast<int64_t>(view.data.size())}, at::kByte));
    file.Release(name);
  }
}

}  // namespace oscar
