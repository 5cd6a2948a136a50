// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of tensors as transformers, vLLM and SGLang load them: without the prefixes of PyTorch
// wrappers (DataParallel, torch.compile, FSDP, activation checkpointing), and with the "model."
// that a model saved without its head lacks (Qwen3-Embedding).
#pragma once

#include <string>
#include <vector>

namespace oscar {

// Returns the names by which tensors are read, in the order of `stored`. Throws InputError naming
// `what` if two names become equal.
std::vector<std::string> NamesToReadBy(const std::vector<std::string>& stored,
                                       const std::string& what);

}  // namespace oscar
