# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Every third-party package. Debian 12 and Ubuntu 24.04 package names are in tools/setup.sh; LibTorch comes from the torch wheel.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(simdjson REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(LibTorch 2.6 REQUIRED)
if(OSCAR_CUDA_ENABLED AND NOT LibTorch_CUDA)  # kernels run on its streams
  if(OSCAR_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "OSCAR_WITH_CUDA=ON, but the LibTorch at ${LibTorch_ROOT} has no CUDA libraries: take one that has, or configure with OSCAR_WITH_CUDA=OFF")
  endif()
  set(OSCAR_CUDA_ENABLED OFF)
  set(OSCAR_CUDA_REASON "LibTorch has no CUDA libraries")
endif()

pkg_check_modules(LAPACKE REQUIRED IMPORTED_TARGET lapacke)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LIBURING IMPORTED_TARGET liburing)  # without it a pool of threads reads weights

set(HDF5_NO_FIND_PACKAGE_CONFIG_FILE ON)
find_package(HDF5 REQUIRED COMPONENTS C)
add_library(oscar_hdf5 INTERFACE)
target_include_directories(oscar_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(oscar_hdf5 INTERFACE ${HDF5_C_LIBRARIES})
