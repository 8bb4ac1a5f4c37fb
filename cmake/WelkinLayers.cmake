# SPDX-License-Identifier: Apache-2.0
# One static library per folder of src/, all of which become libwelkin.so; and one test executable per folder of tests/unit/.

# torch as Welkin's own sources see it, without headers that they do not need (cmake/lean_torch/README.md).
add_library(welkin_lean_torch INTERFACE)
target_include_directories(welkin_lean_torch SYSTEM BEFORE INTERFACE "${CMAKE_SOURCE_DIR}/cmake/lean_torch")
target_compile_definitions(welkin_lean_torch INTERFACE AT_PER_OPERATOR_HEADERS)
target_link_libraries(welkin_lean_torch INTERFACE welkin_torch)

# LibTorch's headers take 6 to 13 s of every unit that includes them, our files a second each. So the headers are precompiled once for the
# library and once for the tests, whose flags differ. GCC instantiates their templates in each unit again (3 s), so rooms share units.
function(welkin_torch_headers target owner header)
  if(NOT WELKIN_PRECOMPILE)
    return()
  endif()
  if(target STREQUAL owner)
    target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/cmake")  # by name: a path of the clone would be part of it
    target_precompile_headers(${target} PRIVATE "<${header}.h>")
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# Neighbouring files of a target share a unit, and with it the scope of unnamed namespaces: tools/compile_units.py says which, and
# tools/check_names.py keeps the names of a layer apart.
function(welkin_compile_units target)
  cmake_parse_arguments(ARG "" "" "APART;FOLDERS;SOURCES" ${ARGN})
  string(REPLACE ";" "," _apart "${ARG_APART}")
  string(REPLACE ";" "," _folders "src;${ARG_FOLDERS}")
  execute_process(COMMAND "${WELKIN_PYTHON}" "${CMAKE_SOURCE_DIR}/tools/compile_units.py" "${CMAKE_SOURCE_DIR}" "${WELKIN_UNIT_KB}" "${_folders}" "${_apart}"
      ${ARG_SOURCES}
    OUTPUT_VARIABLE _rows COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" ";" _rows "${_rows}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${WELKIN_UNITY} UNITY_BUILD_MODE GROUP)
  while(_rows)
    list(POP_FRONT _rows _unit _source)
    set_source_files_properties("${_source}" PROPERTIES UNITY_GROUP ${_unit})
    if(_unit MATCHES "^free")
      set_source_files_properties("${_source}" "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${_unit}_cxx.cxx"
        PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    elseif(WELKIN_FUZZ)
      set_source_files_properties("${_source}" PROPERTIES HEADER_FILE_ONLY ON)  # parsers include no torch
    endif()
  endwhile()
endfunction()

# What is compiled as the kernels are shares their precompiled headers; under sanitizers the rest differs in flags, and has its own.
function(welkin_plain_target target has_kernels)
  if(NOT WELKIN_SANITIZE OR has_kernels)
    welkin_torch_headers(${target} welkin_ops torch_headers)
  else()
    set_target_properties(${target} PROPERTIES WELKIN_IS_PLAIN ON)
    welkin_torch_headers(${target} welkin_model torch_headers)
  endif()
endfunction()

# welkin_layer(name [TORCH] [KERNELS] [GLUE|ONCE [HOT ...]] [LAYERS ...] [LIBRARIES ...] [APART ...]): src/<name>/**.cpp. KERNELS: sanitizers need it
# optimised. GLUE: nothing in it takes time when it runs, but for the HOT files, and -O1 compiles in two thirds of the time. ONCE: nothing in it
# even runs in every step, and -Og takes 15 % less again. APART: see tools/compile_units.py.
function(welkin_layer name)
  cmake_parse_arguments(ARG "TORCH;KERNELS;GLUE;ONCE" "" "LAYERS;LIBRARIES;APART;HOT" ${ARGN})
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.cpp")
  list(FILTER _sources EXCLUDE REGEX "/src/(data/ingest/component|(ops|parallel)/cuda)/")  # shared objects of their own
  if(NOT _sources)
    add_library(welkin_${name} INTERFACE)
    set(_scope INTERFACE)
  else()
    add_library(welkin_${name} STATIC ${_sources})
    set(_scope PUBLIC)
    welkin_compile_units(welkin_${name} APART ${ARG_APART} SOURCES ${_sources})
    if(ARG_GLUE)
      target_compile_options(welkin_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    elseif(ARG_ONCE)
      target_compile_options(welkin_${name} PRIVATE $<$<CONFIG:Release>:-Og>)
    endif()
    if(ARG_HOT)
      set_source_files_properties(${ARG_HOT} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>")
    endif()
    if(ARG_TORCH)
      welkin_plain_target(welkin_${name} "${ARG_KERNELS}")
    elseif(WELKIN_SANITIZE AND NOT WELKIN_FUZZ)
      set_target_properties(welkin_${name} PROPERTIES WELKIN_IS_PLAIN ON)
    endif()
    set_property(GLOBAL APPEND PROPERTY WELKIN_LAYERS welkin_${name})
  endif()
  target_link_libraries(welkin_${name} ${_scope} welkin_flags ${ARG_LIBRARIES})
  if(ARG_TORCH)
    target_link_libraries(welkin_${name} ${_scope} welkin_lean_torch)
  endif()
  foreach(_layer ${ARG_LAYERS})
    target_link_libraries(welkin_${name} ${_scope} welkin_${_layer})
  endforeach()
endfunction()

# The time limits end tests that hang, and no test that is slow. What every test finds in its environment: the built binary, the sources, and
# the shared data where a machine has it. glibc fills memory that is freed, so that whoever looks at it afterwards fails.
function(welkin_test_properties test label timeout)
  set_tests_properties(${test} PROPERTIES LABELS ${label} TIMEOUT ${timeout} SKIP_RETURN_CODE 77 ENVIRONMENT
    "GOMP_SPINCOUNT=0;MALLOC_PERTURB_=165;XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/test-cache;WELKIN_BINARY=${CMAKE_BINARY_DIR}/welkin;WELKIN_SOURCE_DIR=${CMAKE_SOURCE_DIR};WELKIN_TEST_PYTHON=${WELKIN_TEST_PYTHON}")
  if(label STREQUAL distributed)
    # Several ranks. ./test.sh counts two places for each core, so one such test runs, and one of another label beside it.
    set_tests_properties(${test} PROPERTIES PROCESSORS 3 COST 1000)
  endif()
endfunction()

# welkin_test_program(name label timeout LAYERS... SOURCES... FOLDERS...): one GoogleTest executable.
function(welkin_test_program name label timeout)
  cmake_parse_arguments(ARG "" "" "LAYERS;SOURCES;FOLDERS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LAYERS} GTest::gtest_main GTest::gmock)
  # What every label shares (tolerance.h, gradient_check.h), and what the tests of a layer share.
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests" ${ARG_FOLDERS})
  # Compiling them is a third of a whole build, and their own code is no work: -O3 of it took twice as long.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  set_target_properties(${name} PROPERTIES BUILD_RPATH "${TORCH_LIB}" WELKIN_IS_TEST ON)
  welkin_compile_units(${name} FOLDERS tests ${ARG_FOLDERS} SOURCES ${ARG_SOURCES})
  get_target_property(_libraries ${name} LINK_LIBRARIES)
  if("${_libraries}" MATCHES "welkin_(ops|data|model|parallel|train|bench|verify)")
    welkin_torch_headers(${name} unit_ops test_headers)
  endif()
  add_dependencies(tests_${label} ${name})
endfunction()

# welkin_run_program(name label timeout shards): the program's cases as one CTest test, or dealt out over several, which run side by side.
function(welkin_run_program name label timeout shards)
  set(_test ${name})
  foreach(_shard RANGE 1 ${shards})
    if(shards GREATER 1)
      set(_test ${name}_${_shard})
    endif()
    add_test(NAME ${_test} COMMAND ${name} --gtest_output=xml:${CMAKE_BINARY_DIR}/test-reports/${_test}.xml)
    welkin_test_properties(${_test} ${label} ${timeout})
    math(EXPR _index "${_shard} - 1")
    set_property(TEST ${_test} APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=${shards} GTEST_SHARD_INDEX=${_index})
  endforeach()
endfunction()

# welkin_unit_tests(name): tests/unit/<name>/**.cpp as unit_<name>.
function(welkin_unit_tests name)
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/unit/${name}/*.cpp")
  if(_sources)
    welkin_test_program(unit_${name} unit 900 LAYERS welkin_${name} SOURCES ${_sources} FOLDERS "${CMAKE_SOURCE_DIR}/tests/unit/${name}")
    welkin_run_program(unit_${name} unit 900 1)
  endif()
endfunction()

# welkin_label_tests(label TIMEOUT seconds [SHARDS n]): tests/<label>/**.cpp as one program <label>_tests, and its scripts one by one.
function(welkin_label_tests label)
  cmake_parse_arguments(ARG "" "TIMEOUT;SHARDS" "" SHARDS 1 ${ARGN})
  set(_folder "${CMAKE_SOURCE_DIR}/tests/${label}")
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${_folder}/*.cpp")
  list(FILTER _sources EXCLUDE REGEX "/plugin/[^/]+$")  # a project of its own
  if(_sources)
    welkin_test_program(${label}_tests ${label} ${ARG_TIMEOUT} LAYERS welkin_bench welkin_verify SOURCES ${_sources})
    welkin_run_program(${label}_tests ${label} ${ARG_TIMEOUT} ${ARG_SHARDS})
  endif()
  file(GLOB _scripts CONFIGURE_DEPENDS "${_folder}/*_test.sh" "${_folder}/*_test.py" "${_folder}/*/*_test.sh" "${_folder}/*/*_test.py")
  foreach(_script ${_scripts})
    get_filename_component(_name "${_script}" NAME_WE)
    if(_script MATCHES "\\.py$")
      add_test(NAME ${label}_${_name} COMMAND "${WELKIN_TEST_PYTHON}" "${CMAKE_SOURCE_DIR}/tools/run_script_test.py"
        "${CMAKE_BINARY_DIR}/test-reports/${label}_${_name}.xml" "${_script}")
    else()
      add_test(NAME ${label}_${_name} COMMAND bash "${_script}")
    endif()
    welkin_test_properties(${label}_${_name} ${label} ${ARG_TIMEOUT})
  endforeach()
endfunction()
