# SPDX-License-Identifier: Apache-2.0
# Warnings, sanitizers and ccache for every target of ours.
find_program(WELKIN_CCACHE ccache)
if(WELKIN_CCACHE)
  # Precompiled headers need the sloppiness. Without the folder in its hashes, every clone on a machine shares what one has compiled.
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${WELKIN_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros "${WELKIN_CCACHE}")
endif()

add_library(welkin_flags INTERFACE)
target_compile_options(welkin_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion $<$<BOOL:${WELKIN_WERROR}>:-Werror>)
# Float results must not depend on how an expression is contracted (docs/reference/numerics.md).
target_compile_options(welkin_flags INTERFACE -ffp-contract=off)
# No path of the build machine in messages and debug information.
target_compile_options(welkin_flags INTERFACE "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")
target_include_directories(welkin_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
if(WELKIN_SANITIZE)
  # GCC's flow warnings are documented to be unreliable in instrumented code.
  target_compile_options(welkin_flags INTERFACE -fno-omit-frame-pointer -g1 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # Compiling is most of the time. The tests' own code is not what is looked at: without UBSan and at -O0 it takes two fifths.
  # Layers without kernels (WELKIN_IS_PLAIN) take half at -O0, without UBSan's checks of each pointer, which ASan makes when it is used.
  set(_is_test "$<BOOL:$<TARGET_PROPERTY:WELKIN_IS_TEST>>")
  set(_is_plain "$<BOOL:$<TARGET_PROPERTY:WELKIN_IS_PLAIN>>")
  string(REGEX REPLACE ",?undefined" "" _of_tests "${WELKIN_SANITIZE}")
  target_compile_options(welkin_flags INTERFACE "$<${_is_test}:-fsanitize=${_of_tests};-O0>" "$<$<NOT:${_is_test}>:-fsanitize=${WELKIN_SANITIZE}>"
    "$<${_is_plain}:-O0;-fno-sanitize=null$<COMMA>vptr$<COMMA>object-size$<COMMA>pointer-overflow>")
  target_link_options(welkin_flags INTERFACE -fsanitize=${WELKIN_SANITIZE})
  if(WELKIN_SANITIZE MATCHES undefined)
    target_compile_options(welkin_flags INTERFACE -fno-sanitize-recover=undefined)  # a finding fails the test
  endif()
endif()
