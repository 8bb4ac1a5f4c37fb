# SPDX-License-Identifier: Apache-2.0
# `cmake --install build/release --prefix DIR --strip`: a folder that runs wherever it is copied to, with any torch 2.11.0 of that machine.
set(CMAKE_INSTALL_LIBDIR lib)  # never lib64 or a multiarch folder: the launcher looks in ../lib
set(CMAKE_INSTALL_INCLUDEDIR include)
include(CMakePackageConfigHelpers)
install(TARGETS welkin welkin_launcher RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
install(TARGETS welkin_check_files RUNTIME DESTINATION libexec)
install(TARGETS welkin_c LIBRARY DESTINATION lib PUBLIC_HEADER DESTINATION include)
foreach(_optional welkin_ingest welkin_cuda welkin_python)
  if(TARGET ${_optional})
    install(TARGETS ${_optional} LIBRARY DESTINATION lib)
  endif()
endforeach()
install(DIRECTORY "${CMAKE_SOURCE_DIR}/src/" DESTINATION include/welkin FILES_MATCHING PATTERN "*.h"
  PATTERN "data/ingest/component" EXCLUDE PATTERN "parallel/gloo_abi" EXCLUDE PATTERN "ops/cuda" EXCLUDE)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/config/" DESTINATION share/welkin/config FILES_MATCHING PATTERN "*.yaml")
install(FILES "${CMAKE_SOURCE_DIR}/packaging/modules/welkin" DESTINATION share/welkin/modulefiles/welkin RENAME ${PROJECT_VERSION})
install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" "${CMAKE_SOURCE_DIR}/NOTICE" DESTINATION share/welkin)
configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/WelkinConfig.cmake.in" "${CMAKE_BINARY_DIR}/WelkinConfig.cmake"
  INSTALL_DESTINATION lib/cmake/Welkin)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/WelkinConfigVersion.cmake" COMPATIBILITY ExactVersion)
install(FILES "${CMAKE_BINARY_DIR}/WelkinConfig.cmake" "${CMAKE_BINARY_DIR}/WelkinConfigVersion.cmake"
  "${CMAKE_SOURCE_DIR}/cmake/WelkinTorch.cmake" "${CMAKE_SOURCE_DIR}/cmake/WelkinPlugin.cmake"
  "${WELKIN_PLUGIN_STAMP}" DESTINATION lib/cmake/Welkin)
# The manual page and the completion of shells are what the program prints. It needs torch for that: the build's. Without them the rest is of
# use, so that a program that does not run here (another processor) is a warning.
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/printed")
function(welkin_install_printed form folder name)
  set(_file "${CMAKE_BINARY_DIR}/printed/${name}.${form}")
  install(CODE "
    execute_process(COMMAND \"${CMAKE_BINARY_DIR}/welkin\" --torch \"${TORCH_ROOT}\" completion ${form}
      OUTPUT_FILE \"${_file}\" RESULT_VARIABLE _failed)
    if(_failed)
      message(WARNING \"${folder}/${name} is left out: welkin completion ${form} did not run\")
    else()
      file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\" TYPE FILE RENAME \"${name}\" FILES \"${_file}\")
    endif()")
endfunction()
welkin_install_printed(man share/man/man1 welkin.1)
welkin_install_printed(bash share/bash-completion/completions welkin)
welkin_install_printed(zsh share/zsh/site-functions _welkin)
