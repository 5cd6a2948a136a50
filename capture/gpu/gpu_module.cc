// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/gpu/gpu_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "linalg/base/error.h"

namespace oscar {

#ifdef OSCAR_GPU_MODULE

const GpuModule* LoadGpuModule() {
  static const GpuModule* const module = []() -> const GpuModule* {
    if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr) return nullptr;
    void* const object = dlopen(OSCAR_GPU_MODULE, RTLD_NOW | RTLD_GLOBAL);
    void* const exports = object == nullptr ? nullptr : dlsym(object, "oscar_gpu_module");
    if (exports == nullptr) {
      throw ResourceError(fmt::format("cannot load {}, which is needed to use a GPU: {}",
                                      OSCAR_GPU_MODULE, dlerror()));
    }
    return static_cast<const GpuModule*>(exports);
  }();
  return module;
}

#else

const GpuModule* LoadGpuModule() { return nullptr; }

#endif

}  // namespace oscar
