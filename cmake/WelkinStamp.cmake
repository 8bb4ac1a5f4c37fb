# SPDX-License-Identifier: Apache-2.0
# A stamp of all headers, which the program and every plug-in carry: one that was built with others would have other layouts of the same
# types, and the program refuses it (src/launch/plugin.h).
file(GLOB_RECURSE _headers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/*.h")
list(FILTER _headers EXCLUDE REGEX "/(data/ingest/component|ops/cuda|parallel/gloo_abi)/")
list(SORT _headers)
set(_hashes "")
foreach(_header ${_headers})
  file(SHA256 "${_header}" _hash)
  file(RELATIVE_PATH _name "${CMAKE_SOURCE_DIR}" "${_header}")
  string(APPEND _hashes "${_name} ${_hash}\n")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_headers})
string(SHA256 _hash "${_hashes}")
string(SUBSTRING "${_hash}" 0 16 _hash)
set(WELKIN_PLUGIN_STAMP "${CMAKE_BINARY_DIR}/stamp/plugin_stamp.cpp")
file(CONFIGURE OUTPUT "${WELKIN_PLUGIN_STAMP}" CONTENT "// Made by cmake/WelkinStamp.cmake.
extern \"C\" {
extern const char welkin_plugin_stamp[];
const char welkin_plugin_stamp[] = \"welkin ${PROJECT_VERSION}, headers ${_hash}\";
}
")
add_library(welkin_stamp STATIC "${WELKIN_PLUGIN_STAMP}")
target_compile_definitions(welkin_stamp PRIVATE welkin_plugin_stamp=welkin_own_stamp)
set_target_properties(welkin_stamp PROPERTIES POSITION_INDEPENDENT_CODE ON)
