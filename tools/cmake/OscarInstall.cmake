# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# cmake --install: programs, the shared objects that they load, and what each prints of itself: man page and bash
# completions. The programs find LibTorch where it was found when they were linked, and need no file of the source tree.
include(GNUInstallDirs)

function(oscar_install)
  set_target_properties(${ARGN} PROPERTIES INSTALL_RPATH "${LibTorch_ROOT}/lib;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/oscar" INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${ARGN} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(TARGET oscar_gpu_module)
    set_target_properties(oscar_gpu_module PROPERTIES INSTALL_RPATH "${LibTorch_ROOT}/lib")
    install(TARGETS oscar_gpu_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/oscar)
  endif()
  set_target_properties(oscar_torch PROPERTIES INSTALL_RPATH "${LibTorch_ROOT}/lib")
  install(TARGETS oscar_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/oscar)
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
        execute_process(COMMAND \"\${prefix}/${CMAKE_INSTALL_BINDIR}/\${program}\" \${arguments}
                        OUTPUT_FILE \"\${file}\" COMMAND_ERROR_IS_FATAL ANY)
        message(STATUS \"Installing: \${file}\")
      endforeach()
    endforeach()")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/oscar)
  install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/capture/text/corpus/LICENSES.md ${PROJECT_SOURCE_DIR}/capture/text/corpus/sources.tsv
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/corpus)
endfunction()
