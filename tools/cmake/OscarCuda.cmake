# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# The CUDA *toolkit* is needed only by code that includes its headers. LibTorch brings its own CUDA libraries and uses a GPU
# without it, so OFF still calibrates on a GPU.
set(OSCAR_CUDA_ENABLED OFF)
set(OSCAR_CUDA_REASON "switched off")
if(NOT OSCAR_WITH_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
    set(OSCAR_CUDA_ENABLED ON)
    set(OSCAR_CUDA_REASON "toolkit ${CUDAToolkit_VERSION}")
  elseif(OSCAR_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "OSCAR_WITH_CUDA=ON, but no CUDA toolkit was found: install one, or configure with OSCAR_WITH_CUDA=OFF")
  else()
    set(OSCAR_CUDA_REASON "no toolkit found")
  endif()
endif()
