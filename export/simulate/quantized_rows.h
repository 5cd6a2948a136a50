// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A method whose cache returns rows from a file: keys and values of a dump that another program
// quantized and read back. The file is HDF5:
//
//   /                attribute bits_per_element, float64: bits of an element, including scales
//   /input_ids       [T] int32, those of the dump
//   /layer/<id>/k    [T, num_kv_heads, head_dim]
//   /layer/<id>/v    [T, num_kv_heads, v_head_dim]
//   /layer/<id>/c_kv [T, latent_rank]: latent attention only, instead of k and v
//
// Values are float64, float32, float16, or bfloat16 as uint16 with the attribute dtype = "bf16".
// Their type may differ from the dump's. Other objects are ignored, so the file may be a copy of
// the dump with other keys and values. Trap: rows are found by sequence and position, so such a
// method is only for validations of that dump.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "capture/dump/attention_dump.h"
#include "export/simulate/cache_method.h"

namespace oscar {

// Opens the file and checks everything except the values, which are checked for NaN and infinity
// when they are read. Throws InputError naming the file and the object.
std::shared_ptr<const CacheMethod> QuantizedMethod(const std::string& name,
                                                   const std::filesystem::path& path,
                                                   const AttentionDump& dump);

}  // namespace oscar
