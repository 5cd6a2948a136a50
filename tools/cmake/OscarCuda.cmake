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

# Machine code for sm_80 runs on sm_86 and sm_89 too; sm_100 and sm_120 compile the PTX when a program starts.
# -DOSCAR_CUDA_ARCHITECTURES="80-real;86-real;89-real;90a-real;100-real;120-real" has code for each.
set(OSCAR_CUDA_ARCHITECTURES "80;90a-real" CACHE STRING "CUDA architectures of the kernels")
# By default the CUDA runtime is linked statically, so that programs start on a machine without a toolkit.
option(OSCAR_CUDA_SHARED_RUNTIME "Launch kernels through the shared runtime, where tools/dev/gpu_faults.sh lets calls fail" OFF)
if(OSCAR_CUDA_ENABLED)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  set(CMAKE_CUDA_ARCHITECTURES ${OSCAR_CUDA_ARCHITECTURES})
  if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  if(OSCAR_CUDA_SHARED_RUNTIME)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
    set(OSCAR_CUDART CUDA::cudart)
  else()
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    set(OSCAR_CUDART CUDA::cudart_static)
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
endif()
