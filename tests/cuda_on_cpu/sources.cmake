# SPDX-License-Identifier: Apache-2.0
# cuda_on_cpu: the kernels of src/ops/cuda and their functions of tensors, compiled for the CPU by cuda_runtime_api.h beside this.
# A launch kernel<<<grid, block, bytes, stream>>>(...) becomes a call; all else of a source is compiled as it stands.
set(_copies "${CMAKE_BINARY_DIR}/cuda_on_cpu")
set(_sources "${CMAKE_CURRENT_LIST_DIR}/grid_runner.cpp")
file(GLOB _kernels CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/ops/cuda/*.cu" "${CMAKE_SOURCE_DIR}/src/ops/cuda/*.cuh")
foreach(_kernel ${_kernels})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_kernel}")
  file(RELATIVE_PATH _name "${CMAKE_SOURCE_DIR}/src" "${_kernel}")
  file(READ "${_kernel}" _text)
  string(REGEX REPLACE "([a-z_]+(<[A-Za-z, ]*>)?)<<<([^\n]*)>>>"
         "welkin::tests::cuda_launch([](auto... arguments) { \\1(arguments...); }, \\3)" _text "${_text}")
  set(_text "#line 1 \"${_kernel}\"\n${_text}")
  if(_name MATCHES "\\.cuh$")
    file(CONFIGURE OUTPUT "${_copies}/${_name}" CONTENT "${_text}" @ONLY)  # found before that of src/
  else()
    file(CONFIGURE OUTPUT "${_copies}/${_name}.cpp" CONTENT "${_text}" @ONLY)
    string(REGEX REPLACE "u$" "pp" _functions "${_kernel}")
    list(APPEND _sources "${_copies}/${_name}.cpp" "${_functions}")
  endif()
endforeach()
add_library(cuda_on_cpu OBJECT ${_sources})
set_target_properties(cuda_on_cpu PROPERTIES UNITY_BUILD ${WELKIN_UNITY} UNITY_BUILD_BATCH_SIZE 6)
target_include_directories(cuda_on_cpu BEFORE PUBLIC "${CMAKE_CURRENT_LIST_DIR}" PRIVATE "${_copies}")
target_compile_options(cuda_on_cpu PRIVATE -Wno-unknown-pragmas -fno-strict-aliasing)  # nvcc has none
target_link_libraries(cuda_on_cpu PUBLIC welkin_ops)
welkin_torch_headers(cuda_on_cpu welkin_ops torch_headers)
