# SPDX-License-Identifier: Apache-2.0
# cuda_on_cpu: the kernels of src/ops/cuda and their functions of tensors, compiled for the CPU by cuda_runtime_api.h beside this.
# A launch kernel<<<grid, block, bytes, stream>>>(...) becomes a call; all else of a source is compiled as it stands.
file(GLOB _kernels CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/ops/cuda/*.cu")
set(_sources "${CMAKE_CURRENT_LIST_DIR}/grid_runner.cpp")
foreach(_kernel ${_kernels})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_kernel}")
  get_filename_component(_name "${_kernel}" NAME_WE)
  file(READ "${_kernel}" _text)
  string(REGEX REPLACE "([a-z_]+)<<<([^\n]*)>>>"
         "welkin::tests::cuda_launch([](auto... arguments) { \\1(arguments...); }, \\2)" _text "${_text}")
  set(_copy "${CMAKE_BINARY_DIR}/cuda_on_cpu/${_name}_kernels.cpp")
  file(CONFIGURE OUTPUT "${_copy}" CONTENT "#line 1 \"${_kernel}\"\n${_text}" @ONLY)
  list(APPEND _sources "${_copy}" "${CMAKE_SOURCE_DIR}/src/ops/cuda/${_name}.cpp")
endforeach()
add_library(cuda_on_cpu OBJECT ${_sources})
target_include_directories(cuda_on_cpu BEFORE PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
target_compile_options(cuda_on_cpu PRIVATE -Wno-unknown-pragmas)
target_link_libraries(cuda_on_cpu PUBLIC welkin_ops)
