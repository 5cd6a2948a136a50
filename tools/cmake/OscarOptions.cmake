# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# How our own code is compiled. `oscar_options` is linked PRIVATE by every target of ours and never reaches third parties.
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
# Codes must match bit for bit between scalar code, tensors and kernels: no contraction of a*b+c behind our back.
set(host "$<COMPILE_LANGUAGE:C,CXX>")
target_compile_options(oscar_options INTERFACE
  "$<${host}:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-ffp-contract=off>"
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-lineinfo;-DFMT_CONSTEVAL=;-Xcompiler=-Wall,-ffp-contract=off>")
# Most files need a gigabyte anyway: collecting garbage from 128 MB on costs GCC time and saves little memory.
target_compile_options(oscar_options INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>")
# A clean build optimizes far longer than tests and demonstrations run: there all but arithmetic is optimized less, except in
# what users install. Trap: from GCC 13 on a precompiled header serves no other level of optimization, so the two programs that
# share that of oscar_calib are listed with it.
if(OSCAR_UNITY_BUILD AND NOT OSCAR_FUZZ)
  set(arithmetic oscar_linalg oscar_lapack_solver oscar_model oscar_fit oscar_calib oscar_evaluate oscar_fold oscar_simulate oscar_validate
                 oscar_kernel_validation oscar_reference oscar_torch oscar_torch_parts oscar-calibrate oscar-validate)
  target_compile_options(oscar_options INTERFACE "$<$<AND:${host},$<NOT:$<CONFIG:Release>>,$<NOT:$<IN_LIST:$<TARGET_PROPERTY:NAME>,${arithmetic}>>>:-O1>")
endif()
if(OSCAR_WARNINGS_AS_ERRORS)
  # GCC's flow-based warnings depend on its optimizer and cry wolf over std::string and std::vector: shown, not fatal.
  target_compile_options(oscar_options INTERFACE
    "$<${host}:-Werror;-Wno-error=array-bounds;-Wno-error=stringop-overflow;-Wno-error=stringop-overread>"
    "$<${host}:-Wno-error=maybe-uninitialized;-Wno-error=restrict>" "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
  # GCC 13 takes any function of a temporary and a reference for one that returns the temporary.
  target_compile_options(oscar_options INTERFACE "$<${host}:-Wno-dangling-reference>")
endif()
# Hardens installed programs against bugs in parsers. tools/dev/check_hardening checks the finished
# program.
set(release "$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:C,CXX>>")
target_compile_options(oscar_options INTERFACE
  "$<${release}:-fstack-protector-strong;-fstack-clash-protection;-fcf-protection;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
# A shared module that is linked with -pie wants a main.
target_link_options(oscar_options INTERFACE
  "$<$<AND:$<CONFIG:Release>,$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>:-pie>"
  "$<$<CONFIG:Release>:-Wl,-z,relro,-z,now,-z,noexecstack>")
if(NOT OSCAR_TORCH STREQUAL "found")  # RPATH, unlike RUNPATH, is also where the libraries of a program find theirs
  target_link_options(oscar_options INTERFACE -Wl,--disable-new-dtags)
endif()
# A hundred and thirty programs are linked in a third of the time.
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
  # Our mutators know the structure: looking at every comparison for values to try costs much time. The check of
  # dynamic types looks them up in a cache by the address, which is another in each process, and a miss is an edge: it stays with preset asan.
  target_compile_options(oscar_options INTERFACE
    "$<${host}:-fsanitize=fuzzer-no-link;-fno-sanitize-coverage=trace-cmp;-fno-sanitize=vptr>")
  target_compile_definitions(oscar_options INTERFACE OSCAR_FUZZ)
endif()

# oscar_library(NAME target SOURCES ... [LIBS ...] [PRIVATE_LIBS ...]): a library of one folder, static or with BUILD_SHARED_LIBS shared.
function(oscar_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LIBS;PRIVATE_LIBS" ${ARGN})
  add_library(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_LIBS} PRIVATE oscar_options ${ARG_PRIVATE_LIBS})
  set_target_properties(${ARG_NAME} PROPERTIES DEFINE_SYMBOL "")  # one command line for both kinds: the compiler's cache serves both
  if(BUILD_SHARED_LIBS)
    target_link_options(${ARG_NAME} PRIVATE -Wl,--exclude-libs,ALL)  # LibTorch must not find our copy of the CUDA runtime
  endif()
  set_property(GLOBAL APPEND PROPERTY OSCAR_LIBRARIES ${ARG_NAME})
endfunction()
