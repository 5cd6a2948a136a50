// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the same harnesses under libFuzzer (preset fuzz); OSCAR_FUZZ_HARNESS names the harness.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/fuzz.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

// Returns nullptr if none is named.
const oscar::fuzz::Harness* Named() {
  const char* const name = std::getenv("OSCAR_FUZZ_HARNESS");
  for (const oscar::fuzz::Harness* harness : oscar::fuzz::AllHarnesses())
    if (name != nullptr && harness->name == name) return harness;
  return nullptr;
}

const oscar::fuzz::Harness& Chosen() {
  static const oscar::fuzz::Harness& chosen = [&]() -> const oscar::fuzz::Harness& {
    if (const oscar::fuzz::Harness* const harness = Named()) return *harness;
    std::fprintf(stderr, "OSCAR_FUZZ_HARNESS names no harness; there are:");
    for (const oscar::fuzz::Harness* harness : oscar::fuzz::AllHarnesses())
      std::fprintf(stderr, " %s", harness->name.data());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }();
  return chosen;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const oscar::fuzz::Harness* const harness = Named();
  if (harness != nullptr && harness->prepare != nullptr) harness->prepare();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  oscar::fuzz::RunOne(Chosen(), {reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  oscar::fuzz::Random random(seed);
  if (Chosen().mutate == nullptr || random() % 3 == 0)
    return LLVMFuzzerMutate(data, size, max_size);
  const std::string changed = Chosen().mutate({reinterpret_cast<const char*>(data), size}, random);
  if (changed.size() > max_size || changed.empty()) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t max_size,
                                            unsigned seed) {
  oscar::fuzz::Random random(seed);
  // Splicing parses two inputs, which is slow, and libFuzzer would use it for half of all inputs.
  if (random() % 2 == 0) return 0;  // libFuzzer tries another mutation
  const std::string spliced =
      Chosen().splice({reinterpret_cast<const char*>(data), size},
                      {reinterpret_cast<const char*>(other), other_size}, random);
  if (spliced.size() > max_size) return 0;
  std::memcpy(out, spliced.data(), spliced.size());
  return spliced.size();
}
