# SPDX-License-Identifier: Apache-2.0
# One libFuzzer program per tests/fuzz/*_fuzz.cpp (those that begin with data_ may use that layer); target `fuzzers` builds them, tools/fuzz.sh runs them.
file(GLOB _fuzzers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
add_custom_target(fuzzers)
foreach(_source ${_fuzzers})
  get_filename_component(_name "${_source}" NAME_WE)
  add_executable(${_name} "${_source}")
  target_link_libraries(${_name} PRIVATE welkin_config welkin_observe welkin_core)
  if(_name MATCHES "^data_")
    target_link_libraries(${_name} PRIVATE welkin_data)
  endif()
  # An archive may stand behind that of the standard streams, which therefore must be taken in before anyone has asked for it.
  target_link_options(${_name} PRIVATE -fsanitize=fuzzer -Wl,-u,welkin_stderr)
  set_target_properties(${_name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzzers" BUILD_RPATH "${TORCH_LIB}")
  add_dependencies(fuzzers ${_name})
endforeach()
