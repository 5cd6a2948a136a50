# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
message(STATUS "oscar ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, sanitizers \"${OSCAR_SANITIZE}\"")
message(STATUS "  LibTorch ${LibTorch_VERSION} at ${LibTorch_ROOT} (CUDA libraries: ${LibTorch_CUDA})")
set(_ranks "one (LibTorch has no c10d with Gloo)")
if(LibTorch_C10D)
  set(_ranks "many, on CPUs (for GPUs LibTorch's NCCL or the headers of CUDA and NCCL are missing)")
  if(LibTorch_NCCL_OPTIONS)
    set(_ranks "many, on CPUs by Gloo and on GPUs by NCCL")
  endif()
endif()
message(STATUS "  ranks of one job: ${_ranks}")
message(STATUS "  CUDA toolkit code: ${OSCAR_CUDA_ENABLED} (${OSCAR_CUDA_REASON})")
