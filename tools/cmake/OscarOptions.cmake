# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# The options with which our own code is compiled. Each of our targets links `oscar_options` PRIVATE, so third-party code does not get them.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)  # programs as libraries, so that they can share a precompiled header
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(oscar_options INTERFACE)
target_include_directories(oscar_options INTERFACE ${PROJECT_SOURCE_DIR})
# Quantized codes must match bit for bit between scalar code, tensors and kernels, so the compiler must not contract a*b+c into an FMA.
set(host "$<COMPILE_LANGUAGE:C,CXX>")
target_compile_options(oscar_options INTERFACE
  "$<${host}:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-ffp-contract=off>"
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-lineinfo;-DFMT_CONSTEVAL=;-Xcompiler=-Wall,-ffp-contract=off>")
# By default GCC collects garbage from 128 MB on. Most files need a gigabyte anyway, so that costs time and saves little memory.
target_compile_options(oscar_options INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>")
# Optimizing takes far longer than the tests and the demonstration run. So only arithmetic is fully optimized, except in release
# builds, which users install. Trap: from GCC 13 on, a precompiled header works only at its own optimization level. So the two
# programs that use the precompiled header of oscar_calib are listed with it.
if(OSCAR_UNITY_BUILD AND NOT OSCAR_FUZZ)
  set(arithmetic oscar_linalg oscar_lapack_solver oscar_model oscar_fit oscar_calib oscar_evaluate oscar_fold oscar_simulate oscar_validate
                 oscar_kernel_validation oscar_reference oscar_torch oscar_torch_parts oscar-calibrate oscar-validate)
  target_compile_options(oscar_options INTERFACE "$<$<AND:${host},$<NOT:$<CONFIG:Release>>,$<NOT:$<IN_LIST:$<TARGET_PROPERTY:NAME>,${arithmetic}>>>:-O1>")
endif()
if(OSCAR_WARNINGS_AS_ERRORS)
  # GCC's flow-based warnings depend on its optimizer and give false alarms for std::string and std::vector. They are shown but are not errors.
  target_compile_options(oscar_options INTERFACE
    "$<${host}:-Werror;-Wno-error=array-bounds;-Wno-error=stringop-overflow;-Wno-error=stringop-overread>"
    "$<${host}:-Wno-error=maybe-uninitialized;-Wno-error=restrict>" "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
  # GCC 13 assumes that any function with a temporary argument and a reference result returns the temporary.
  target_compile_options(oscar_options INTERFACE "$<${host}:-Wno-dangling-reference>")
endif()
# Hardens installed programs against bugs in parsers. tools/dev/check_hardening checks the finished
# program.
set(release "$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:C,CXX>>")
target_compile_options(oscar_options INTERFACE
  "$<${release}:-fstack-protector-strong;-fstack-clash-protection;-fcf-protection;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
# Only executables are linked with -pie, because it makes a shared module need a main function.
target_link_options(oscar_options INTERFACE
  "$<$<AND:$<CONFIG:Release>,$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>:-pie>"
  "$<$<CONFIG:Release>:-Wl,-z,relro,-z,now,-z,noexecstack>")
if(NOT OSCAR_TORCH STREQUAL "found")  # RPATH, unlike RUNPATH, is also where the libraries of a program find theirs
  target_link_options(oscar_options INTERFACE -Wl,--disable-new-dtags)
endif()
# gold links our 130 programs in a third of the time.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold OSCAR_HAS_GOLD)
if(OSCAR_HAS_GOLD AND NOT OSCAR_SANITIZE)
  target_link_options(oscar_options INTERFACE "$<$<NOT:$<CONFIG:Release>>:-fuse-ld=gold>")
endif()
if(OSCAR_SANITIZE)
  target_compile_options(oscar_options INTERFACE
    "$<${host}:-fsanitize=${OSCAR_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  target_link_options(oscar_options INTERFACE -fsanitize=${OSCAR_SANITIZE})
endif()
if(OSCAR_FUZZ)
  # Our mutators know the structure of inputs, so libFuzzer need not trace comparisons, which takes much time. The check of dynamic
  # types (vptr) caches them by address. Addresses differ between processes, so cache misses would count as new coverage. That check
  # remains in preset asan.
  target_compile_options(oscar_options INTERFACE
    "$<${host}:-fsanitize=fuzzer-no-link;-fno-sanitize-coverage=trace-cmp;-fno-sanitize=vptr>")
  target_compile_definitions(oscar_options INTERFACE OSCAR_FUZZ)
endif()

# oscar_library(NAME target SOURCES ... [LIBS ...] [PRIVATE_LIBS ...]): makes the library of a folder: static, or shared if BUILD_SHARED_LIBS is set.
function(oscar_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LIBS;PRIVATE_LIBS" ${ARGN})
  add_library(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_LIBS} PRIVATE oscar_options ${ARG_PRIVATE_LIBS})
  set_target_properties(${ARG_NAME} PROPERTIES DEFINE_SYMBOL "")  # static and shared libraries have equal command lines, so ccache serves both
  if(BUILD_SHARED_LIBS)
    target_link_options(${ARG_NAME} PRIVATE -Wl,--exclude-libs,ALL)  # LibTorch must not find our copy of the CUDA runtime
  endif()
  set_property(GLOBAL APPEND PROPERTY OSCAR_LIBRARIES ${ARG_NAME})
endfunction()
