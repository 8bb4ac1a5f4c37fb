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
# Clang sees a shadow in what another file of the unit names, which GCC does not.
target_compile_options(welkin_flags INTERFACE -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wshadow> -Wconversion $<$<BOOL:${WELKIN_WERROR}>:-Werror>)
# GCC collects its own garbage as if memory were short: a tenth of the time of a unit that includes torch.
target_compile_options(welkin_flags INTERFACE "$<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-expand=1000;--param=ggc-min-heapsize=2000000>")
# Float results must not depend on how an expression is contracted (docs/reference/numerics.md).
target_compile_options(welkin_flags INTERFACE -ffp-contract=off)
# No path of the build machine in messages and debug information.
target_compile_options(welkin_flags INTERFACE "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")
target_include_directories(welkin_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
if(WELKIN_SANITIZE)
  # GCC's flow warnings are documented to be unreliable in instrumented code.
  target_compile_options(welkin_flags INTERFACE -fno-omit-frame-pointer -g1 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # Compiling is most of the time. The tests' own code is not what is looked at: without UBSan and at -O0 it takes two fifths.
  # Layers without kernels (WELKIN_IS_PLAIN) take half at -O0. UBSan's checks of each pointer double the time of a unit: ASan checks
  # pointers when they are used, and the fuzzers' build has all of UBSan where foreign bytes are read.
  set(_is_test "$<BOOL:$<TARGET_PROPERTY:WELKIN_IS_TEST>>")
  set(_is_plain "$<BOOL:$<TARGET_PROPERTY:WELKIN_IS_PLAIN>>")
  string(REGEX REPLACE ",?undefined" "" _of_tests "${WELKIN_SANITIZE}")
  target_compile_options(welkin_flags INTERFACE "$<${_is_test}:-fsanitize=${_of_tests};-O0>" "$<$<NOT:${_is_test}>:-fsanitize=${WELKIN_SANITIZE}>"
    "$<${_is_plain}:-O0>")
  if(NOT WELKIN_FUZZ)
    target_compile_options(welkin_flags INTERFACE -fno-sanitize=null,vptr,object-size,pointer-overflow,alignment)
  endif()
  target_link_options(welkin_flags INTERFACE -fsanitize=${WELKIN_SANITIZE})
  if(WELKIN_SANITIZE MATCHES undefined)
    target_compile_options(welkin_flags INTERFACE -fno-sanitize-recover=undefined)  # a finding fails the test
  endif()
endif()
