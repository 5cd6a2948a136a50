// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that need no calibration: 16 bits, naive INT2, and Hadamard rotations in 2 and 4 bits
// (QuaRot's cache, arXiv 2404.00456, with the affine quantizer of OSCAR).
#include "export/simulate/affine_cost.h"
#include "export/simulate/methods/methods.h"
#include "export/simulate/rotation_caches.h"

namespace oscar {
namespace {

LayerCache DataFree(const MethodContext& context, size_t layer_index, const ArmOptions& options,
                    bool hadamard, int bits) {
  const AttentionSpec& spec = context.layers()[layer_index].attention;
  const auto rotation = [&](int64_t dim) { return hadamard ? HadamardTensor(dim) : at::Tensor(); };
  return RotatedCache(context, options,
                      AffineSides(context, rotation(spec.head_dim), rotation(spec.v_head_dim),
                                  GivenClip(context, options), bits));
}

CacheMethod Method(std::string_view name, std::string_view description, bool hadamard, int bits) {
  return {.name = name,
          .description = description,
          .takes_bf16 = bits > 0,
          .make =
              [hadamard, bits](const MethodContext& context, size_t layer_index,
                               const ArmOptions& options) {
                return DataFree(context, layer_index, options, hadamard, bits);
              },
          .cost = AffineCost({.bits = static_cast<double>(bits)})};
}

}  // namespace

CacheMethod Bf16Method() {
  CacheMethod method = Method("bf16", "the reference, without quantization", false, 0);
  method.quantizes = method.takes_clip = method.takes_windows = false;
  method.cost = UnquantizedCost;
  return method;
}

CacheMethod NaiveInt2Method() {
  return Method("naive", "2 bits per token and head, no rotation", false, 2);
}

CacheMethod NaiveInt4Method() {
  return Method("naive_int4", "4 bits per token and head, no rotation", false, 4);
}

CacheMethod HadamardInt2Method() {
  return Method("hadamard", "Hadamard rotation of every head, 2 bits (QuaRot)", true, 2);
}

CacheMethod HadamardInt4Method() {
  return Method("int4_hadamard", "Hadamard rotation of every head, 4 bits", true, 4);
}

}  // namespace oscar
