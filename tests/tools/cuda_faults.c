// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A library to preload: counts the calls of the CUDA runtime that LibTorch and our kernels make,
// and makes a chosen one fail (tools/dev/gpu_faults.sh). Trap: it misses launches of a program
// that is linked with the static runtime; configure with -DOSCAR_CUDA_SHARED_RUNTIME=ON. cuBLAS and
// cuSOLVER contain a runtime of their own, which it does not see either.
//
//   OSCAR_CUDA_FAULT=KIND        launch: kernels; memory: device and pinned allocations; copy:
//                                copies and memsets; wait: for streams, events and devices
//   OSCAR_CUDA_FAULT_AT=K        fails the K-th call of that kind (from 1)
//   OSCAR_CUDA_FAULT_STAYS=1     also fails all later calls, as after an illegal access; for
//                                memory, all later allocations
//   OSCAR_CUDA_FAULT_STACK=FILE  writes the call stack of the first failure, as PROGRAM(+ADDRESS)
//   OSCAR_CUDA_FAULT_COUNT=FILE  writes "KIND CALLS" lines to FILE at exit
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum Kind { kLaunch, kMemory, kCopy, kWait, kKinds };
static const char* const kNames[kKinds] = {"launch", "memory", "copy", "wait"};
static const cudaError_t kErrors[kKinds] = {cudaErrorLaunchFailure, cudaErrorMemoryAllocation,
                                            cudaErrorIllegalAddress, cudaErrorIllegalAddress};

static atomic_long calls[kKinds];
static atomic_int broken;  // the cudaError_t of all later calls, or 0
static _Thread_local cudaError_t pending;
static int chosen = -1, stays;
static long at;

__attribute__((constructor)) static void Begin(void) {
  const char *kind = getenv("OSCAR_CUDA_FAULT"), *number = getenv("OSCAR_CUDA_FAULT_AT");
  for (int i = 0; kind && i < kKinds; ++i)
    if (strcmp(kind, kNames[i]) == 0) chosen = i;
  at = number ? atol(number) : 0;
  stays = getenv("OSCAR_CUDA_FAULT_STAYS") != NULL;
}

__attribute__((destructor)) static void End(void) {
  const char* path = getenv("OSCAR_CUDA_FAULT_COUNT");
  FILE* file = path ? fopen(path, "w") : NULL;
  for (int i = 0; file && i < kKinds; ++i) fprintf(file, "%s %ld\n", kNames[i], calls[i]);
  if (file) fclose(file);
}

static void WriteStack(void) {
  const char* const path = getenv("OSCAR_CUDA_FAULT_STACK");
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
  if (file < 0) return;
  void* callers[64];
  backtrace_symbols_fd(callers, backtrace(callers, 64), file);
  close(file);
}

// Counts a call and returns the error that it must fail with; cudaSuccess: make the call.
static cudaError_t Strike(enum Kind kind) {
  const long number = atomic_fetch_add(&calls[kind], 1) + 1;
  cudaError_t error = (cudaError_t)atomic_load(&broken);
  if (error == cudaErrorMemoryAllocation && kind != kMemory) error = cudaSuccess;
  if ((int)kind == chosen && number == at) {
    error = kErrors[kind];
    WriteStack();
    if (stays) atomic_store(&broken, (int)error);
  }
  if (error != cudaSuccess) pending = error;
  return error;
}

static void* Real(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (!found) {
    fprintf(stderr, "cuda_faults: no %s\n", name);
    abort();
  }
  return found;
}

#define FAIL_OR_CALL(kind, name, types, ...)          \
  static cudaError_t(*real) types;                    \
  if (!real) real = (cudaError_t(*) types)Real(name); \
  const cudaError_t struck = Strike(kind);            \
  return struck != cudaSuccess ? struck : real(__VA_ARGS__)

// nvcc 12 and 13 compile <<<>>> to these two functions.
cudaError_t cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void** args, size_t shared,
                             cudaStream_t stream) {
  FAIL_OR_CALL(kLaunch, "cudaLaunchKernel", (const void*, dim3, dim3, void**, size_t, cudaStream_t),
               f, grid, block, args, shared, stream);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shared, cudaStream_t stream) {
  FAIL_OR_CALL(kLaunch, "__cudaLaunchKernel",
               (cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t), kernel, grid, block, args,
               shared, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* f, void** args) {
  FAIL_OR_CALL(kLaunch, "cudaLaunchKernelExC", (const cudaLaunchConfig_t*, const void*, void**),
               config, f, args);
}
cudaError_t cudaMalloc(void** p, size_t size) {
  FAIL_OR_CALL(kMemory, "cudaMalloc", (void**, size_t), p, size);
}
cudaError_t cudaHostAlloc(void** p, size_t size, unsigned flags) {
  FAIL_OR_CALL(kMemory, "cudaHostAlloc", (void**, size_t, unsigned), p, size, flags);
}
cudaError_t cudaHostRegister(void* p, size_t size, unsigned flags) {
  FAIL_OR_CALL(kMemory, "cudaHostRegister", (void*, size_t, unsigned), p, size, flags);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, enum cudaMemcpyKind kind) {
  FAIL_OR_CALL(kCopy, "cudaMemcpy", (void*, const void*, size_t, enum cudaMemcpyKind), to, from,
               size, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  FAIL_OR_CALL(kCopy, "cudaMemcpyAsync",
               (void*, const void*, size_t, enum cudaMemcpyKind, cudaStream_t), to, from, size,
               kind, stream);
}
cudaError_t cudaMemsetAsync(void* p, int value, size_t size, cudaStream_t stream) {
  FAIL_OR_CALL(kCopy, "cudaMemsetAsync", (void*, int, size_t, cudaStream_t), p, value, size,
               stream);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  FAIL_OR_CALL(kWait, "cudaStreamSynchronize", (cudaStream_t), stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  FAIL_OR_CALL(kWait, "cudaEventSynchronize", (cudaEvent_t), event);
}
cudaError_t cudaDeviceSynchronize(void) { FAIL_OR_CALL(kWait, "cudaDeviceSynchronize", (void)); }

// Returns the error of an earlier launch, which LibTorch reads through this function.
static cudaError_t LastError(const char* name, int clears) {
  cudaError_t (*const real)(void) = (cudaError_t(*)(void))Real(name);
  const cudaError_t own = pending, other = real();
  const cudaError_t stuck = (cudaError_t)atomic_load(&broken);
  if (clears) pending = cudaSuccess;
  if (own != cudaSuccess) return own;
  return stuck != cudaSuccess && stuck != cudaErrorMemoryAllocation ? stuck : other;
}
cudaError_t cudaGetLastError(void) { return LastError("cudaGetLastError", 1); }
cudaError_t cudaPeekAtLastError(void) { return LastError("cudaPeekAtLastError", 0); }
