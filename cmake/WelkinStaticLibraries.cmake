# SPDX-License-Identifier: Apache-2.0
# Debian's static archives, for a libwelkin.so that needs nothing but libc, libstdc++ and torch.
# The archives are not position independent as far as the C library's data symbols go (stdin, stdout, stderr): a copy of the archive has
# these renamed to hidden variables of ours (cmake/stdio_symbols.c), after which it links into a shared object without text relocations.
find_program(WELKIN_OBJCOPY objcopy REQUIRED)
add_library(welkin_stdio_symbols STATIC "${CMAKE_SOURCE_DIR}/cmake/stdio_symbols.c")
# An archive may stand behind this one, which therefore must be taken in before anyone has asked for it.
target_link_options(welkin_stdio_symbols INTERFACE -Wl,-u,welkin_stderr)

function(welkin_static_library name)
  cmake_parse_arguments(ARG "" "HEADER" "ARCHIVES;INCLUDE_SUFFIXES" ${ARGN})
  find_path(${name}_INCLUDE ${ARG_HEADER} PATH_SUFFIXES ${ARG_INCLUDE_SUFFIXES} REQUIRED)
  add_library(${name} INTERFACE)
  target_include_directories(${name} SYSTEM INTERFACE "${${name}_INCLUDE}")
  foreach(_archive ${ARG_ARCHIVES})
    get_filename_component(_file ${_archive} NAME)
    find_library(WELKIN_ARCHIVE_${_file} NAMES ${_file} PATH_SUFFIXES hdf5/serial REQUIRED)
    set(_renamed "${CMAKE_BINARY_DIR}/archives/${_file}")
    if(NOT EXISTS "${_renamed}")
      file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/archives")
      execute_process(
        COMMAND ${WELKIN_OBJCOPY} --redefine-sym stdin=welkin_stdin --redefine-sym stdout=welkin_stdout --redefine-sym
                stderr=welkin_stderr "${WELKIN_ARCHIVE_${_file}}" "${_renamed}" COMMAND_ERROR_IS_FATAL ANY)
    endif()
    target_link_libraries(${name} INTERFACE "${_renamed}")
  endforeach()
  target_link_libraries(${name} INTERFACE welkin_stdio_symbols ${CMAKE_DL_LIBS} m)
endfunction()

welkin_static_library(welkin_hdf5 HEADER hdf5.h INCLUDE_SUFFIXES hdf5/serial ARCHIVES libhdf5.a libsz.a libaec.a libz.a)
welkin_static_library(welkin_yaml HEADER yaml.h ARCHIVES libyaml.a)
welkin_static_library(welkin_png HEADER png.h ARCHIVES libpng.a libz.a)
welkin_static_library(welkin_xxhash HEADER xxhash.h)
welkin_static_library(welkin_sodium HEADER sodium.h ARCHIVES libsodium.a)
# Blosc's archive leaves the compressors inside its frames to theirs.
welkin_static_library(welkin_compressors HEADER blosc.h ARCHIVES libblosc.a libsnappy.a liblz4.a libzstd.a libz.a)
