# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Finds LibTorch and makes imported targets. LibTorch's own TorchConfig.cmake is not used: it fails without the CUDA toolkit (the
# wheel is a CUDA build) and includes the old FindCUDA. The libraries find the nvidia wheels beside them by their own RUNPATH.
#
# Looks in: CMAKE_PREFIX_PATH, variable or environment (a LibTorch folder, or torch.utils.cmake_prefix_path), then .deps
# (what tools/setup.sh installs).
# Gives: LibTorch::LibTorch, LibTorch::Cuda (where LibTorch_CUDA), LibTorch_C10D (whether it has c10d with Gloo), LibTorch_NCCL_OPTIONS (to compile against its NCCL; unset: it has none), LibTorch_ROOT, LibTorch_VERSION, LibTorch_CUDA, LibTorch_CUDA_INCLUDE_DIR (headers of the CUDA runtime,
# with which its own CUDA headers can be included: the wheel's neighbours, or the toolkit).
file(GLOB _libtorch_deps ${PROJECT_SOURCE_DIR}/.deps/python/lib/python3*/site-packages/torch)
set(_libtorch_hints)
string(REPLACE ":" ";" _libtorch_environment "$ENV{CMAKE_PREFIX_PATH}")
foreach(prefix IN LISTS CMAKE_PREFIX_PATH _libtorch_environment)
  list(APPEND _libtorch_hints ${prefix} ${prefix}/../.. ${prefix}/torch)  # torch.utils.cmake_prefix_path is ROOT/share/cmake
endforeach()
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h
          HINTS ${_libtorch_hints} PATHS ${_libtorch_deps} PATH_SUFFIXES include)
get_filename_component(LibTorch_ROOT "${LibTorch_INCLUDE_DIR}" DIRECTORY)
foreach(lib c10 torch_cpu torch c10_cuda torch_cuda)
  find_library(LibTorch_${lib}_LIBRARY ${lib} HINTS ${LibTorch_ROOT}/lib NO_DEFAULT_PATH)
endforeach()
file(GLOB _libtorch_runtimes ${LibTorch_ROOT}/../nvidia/*/include)
# The wheels' runtime headers include some of two other packages.
find_path(LibTorch_CUDA_INCLUDE_DIR crt/host_config.h HINTS ${_libtorch_runtimes} PATHS /usr/local/cuda/include NO_DEFAULT_PATH)
find_path(LibTorch_CCCL_INCLUDE_DIR nv/target HINTS ${LibTorch_CUDA_INCLUDE_DIR} PATH_SUFFIXES cccl NO_DEFAULT_PATH)
find_path(LibTorch_NCCL_INCLUDE_DIR nccl.h HINTS ${_libtorch_runtimes} PATHS /usr/local/cuda/include NO_DEFAULT_PATH)
if(NOT DEFINED LibTorch_C10D AND EXISTS "${LibTorch_INCLUDE_DIR}/torch/csrc/distributed/c10d/ProcessGroupGloo.hpp")
  execute_process(COMMAND sh -c "${CMAKE_NM} -D --defined-only ${LibTorch_torch_cpu_LIBRARY} | grep -c 'c10d16ProcessGroupGlooC1E'"
                  OUTPUT_VARIABLE _libtorch_gloo OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(_libtorch_gloo GREATER 0)
    set(LibTorch_C10D yes CACHE INTERNAL "LibTorch has c10d with Gloo")
  endif()
endif()
set(LibTorch_VERSION "unknown")
foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)  # since 2.9, before
  if(EXISTS "${LibTorch_INCLUDE_DIR}/${header}")
    file(STRINGS ${LibTorch_INCLUDE_DIR}/${header} _libtorch_version REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
    string(REGEX REPLACE "[^0-9;]" "" _libtorch_version "${_libtorch_version}")
    string(REPLACE ";" "." LibTorch_VERSION "${_libtorch_version}")
    break()
  endif()
endforeach()
if(EXISTS "${LibTorch_ROOT}/build-version")  # zip distribution of LibTorch
  file(READ ${LibTorch_ROOT}/build-version LibTorch_VERSION)
  string(STRIP "${LibTorch_VERSION}" LibTorch_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_torch_cpu_LIBRARY LibTorch_c10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run tools/setup.sh, or pass -DCMAKE_PREFIX_PATH=<LibTorch>")
if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  # LibTorch's include folder also has third-party headers, such as fmt, in other versions than the libraries
  # that we link. So it is searched after the system's folders.
  target_compile_options(LibTorch::LibTorch INTERFACE
    "SHELL:-idirafter ${LibTorch_INCLUDE_DIR}" "SHELL:-idirafter ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
  set(LibTorch_CUDA no)
  set(_libtorch_link ${LibTorch_c10_LIBRARY} ${LibTorch_torch_cpu_LIBRARY})
  if(LibTorch_torch_cuda_LIBRARY AND LibTorch_c10_cuda_LIBRARY AND NOT OSCAR_TORCH STREQUAL "bundled")
    set(LibTorch_CUDA yes)
    if(LibTorch_CUDA_INCLUDE_DIR AND LibTorch_CCCL_INCLUDE_DIR AND LibTorch_NCCL_INCLUDE_DIR)
      set(LibTorch_NCCL_OPTIONS -idirafter${LibTorch_CUDA_INCLUDE_DIR} -idirafter${LibTorch_CCCL_INCLUDE_DIR} -idirafter${LibTorch_NCCL_INCLUDE_DIR})
    endif()
    list(APPEND _libtorch_link -Wl,--push-state,--as-needed ${LibTorch_c10_cuda_LIBRARY} -Wl,--pop-state)  # streams
    # The library registers its kernels when it is loaded, so the linker must keep it although no symbol of
    # it is used.
    add_library(LibTorch::Cuda INTERFACE IMPORTED)
    target_link_libraries(LibTorch::Cuda INTERFACE LibTorch::LibTorch -Wl,--push-state,--no-as-needed
                          ${LibTorch_torch_cuda_LIBRARY} -Wl,--pop-state)
  endif()
  target_link_libraries(LibTorch::LibTorch INTERFACE ${_libtorch_link})
endif()
