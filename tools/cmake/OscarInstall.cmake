# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Rules for cmake --install: the programs, the shared objects that they load, and the man page and bash completions that each
# program prints. The programs need no file of the source tree. OSCAR_TORCH says where they find LibTorch; packages set it (tools/package.sh).
include(GNUInstallDirs)

set(objects ${CMAKE_INSTALL_LIBDIR}/oscar)
set(outside OFF)
if(OSCAR_TORCH STREQUAL "found")
  set(torch_from_bin ${LibTorch_ROOT}/lib)
  set(torch_from_objects ${LibTorch_ROOT}/lib)
  set(outside ON)  # and what else was linked from there
elseif(OSCAR_TORCH STREQUAL "wheel")  # site-packages/oscar_kv_tools/{bin,lib/oscar} beside site-packages/torch
  set(torch_from_bin $ORIGIN/../../torch/lib)
  set(torch_from_objects $ORIGIN/../../../torch/lib)
elseif(NOT OSCAR_TORCH STREQUAL "bundled")
  message(FATAL_ERROR "OSCAR_TORCH=${OSCAR_TORCH}: expected found, bundled or wheel")
endif()

# oscar_install(PROGRAM...)
function(oscar_install)
  get_property(libraries GLOBAL PROPERTY OSCAR_LIBRARIES)
  if(NOT BUILD_SHARED_LIBS)
    set(libraries)
  endif()
  list(APPEND libraries oscar_torch)
  if(TARGET oscar_gpu_module)
    list(APPEND libraries oscar_gpu_module)
  endif()
  set_target_properties(${ARGN} PROPERTIES INSTALL_RPATH "$ORIGIN/../${objects};${torch_from_bin}"
                        INSTALL_RPATH_USE_LINK_PATH ${outside})
  set_target_properties(${libraries} PROPERTIES INSTALL_RPATH "$ORIGIN;${torch_from_objects}")
  install(TARGETS ${ARGN} ${libraries} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${objects})
  if(OSCAR_TORCH STREQUAL "bundled")
    install(CODE "
      file(GET_RUNTIME_DEPENDENCIES EXECUTABLES $<TARGET_FILE:oscar-calibrate> RESOLVED_DEPENDENCIES_VAR loaded
           PRE_INCLUDE_REGEXES . POST_INCLUDE_REGEXES /site-packages/ ^${LibTorch_ROOT} POST_EXCLUDE_REGEXES .)
      file(INSTALL \${loaded} DESTINATION \${CMAKE_INSTALL_PREFIX}/${objects} FOLLOW_SYMLINK_CHAIN)")
  endif()
  # The programs of the build tree print these, because the installed ones may not find LibTorch here.
  install(CODE "
    set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    foreach(program ${ARGN})
      foreach(docs
          \"--print-man|${CMAKE_INSTALL_MANDIR}/man1/\${program}.1\"
          \"--print-completion bash|${CMAKE_INSTALL_DATADIR}/bash-completion/completions/\${program}\")
        string(REGEX REPLACE \"^.*[|]\" \"\${prefix}/\" file \"\${docs}\")
        string(REGEX REPLACE \"[|].*$\" \"\" arguments \"\${docs}\")
        separate_arguments(arguments)
        cmake_path(GET file PARENT_PATH folder)
        file(MAKE_DIRECTORY \"\${folder}\")
        execute_process(COMMAND \"$<TARGET_FILE_DIR:oscar>/\${program}\" \${arguments}
                        OUTPUT_FILE \"\${file}\" COMMAND_ERROR_IS_FATAL ANY)
        message(STATUS \"Installing: \${file}\")
      endforeach()
    endforeach()")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/oscar)
  install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/capture/text/corpus/LICENSES.md ${PROJECT_SOURCE_DIR}/capture/text/corpus/sources.tsv
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/corpus)
endfunction()

# cpack -G DEB. Debian's package "oscar" is another program.
set(CPACK_PACKAGE_NAME oscar-kv-tools)
set(CPACK_PACKAGE_CONTACT "The oscar authors <oscar@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "2-bit KV caches for language models: calibrate, validate, export, publish")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS ca-certificates)  # oscar-zoo reads zoos by https
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
include(CPack)
