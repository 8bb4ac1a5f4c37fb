# SPDX-License-Identifier: Apache-2.0
# libwelkin_cuda.so from src/ops/cuda/: opened at run time where torch has CUDA, so that one libwelkin.so serves machines with and without GPU.
# nvcc is called directly, not as a CMake language: CMake's own check of the compiler wants a whole toolkit to link against, and this needs
# only nvcc itself (a toolkit's, or that of the PyPI packages) and the headers and libraries that torch brings.
set(WELKIN_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "compute capabilities with machine code; the last also as PTX for later ones")
find_program(WELKIN_NVCC nvcc HINTS "${CMAKE_SOURCE_DIR}/build/nvcc/nvidia/cu13/bin" /usr/local/cuda/bin)
if(NOT WELKIN_NVCC)
  message(FATAL_ERROR "WELKIN_CUDA needs nvcc 13.0: run ./quickstart.sh --cuda, or pass -DWELKIN_NVCC=/path/to/nvcc")
endif()
execute_process(COMMAND "${WELKIN_NVCC}" --version OUTPUT_VARIABLE _nvcc_version COMMAND_ERROR_IS_FATAL ANY)
if(NOT _nvcc_version MATCHES "release 13\\.")
  message(FATAL_ERROR "nvcc 13 wanted (torch 2.11.0 is built for CUDA 13): ${WELKIN_NVCC} says ${_nvcc_version}")
endif()
get_filename_component(_cuda_root "${TORCH_ROOT}/../nvidia/cu13" ABSOLUTE)  # cudart's headers and library, from the wheel that torch needs
get_filename_component(_nvcc_root "${WELKIN_NVCC}/../.." REALPATH)
find_path(WELKIN_CUDART_INCLUDE cuda_runtime_api.h HINTS "${_cuda_root}/include" "${_nvcc_root}/include" REQUIRED NO_DEFAULT_PATH)
find_file(WELKIN_CUDART libcudart.so.13 HINTS "${_cuda_root}/lib" "${_nvcc_root}/lib64" REQUIRED NO_DEFAULT_PATH)

set(_codes "")
foreach(_arch ${WELKIN_CUDA_ARCHITECTURES})
  list(APPEND _codes "-gencode=arch=compute_${_arch},code=sm_${_arch}")
endforeach()
list(GET WELKIN_CUDA_ARCHITECTURES -1 _newest)
list(APPEND _codes "-gencode=arch=compute_${_newest},code=compute_${_newest}")

# A .cu that includes ATen is parsed once per architecture (24 s): kernels take raw pointers, and the .cpp beside them knows tensors.
# welkin_cuda_objects(out sources...): one object per .cu
function(welkin_cuda_objects out)
  set(_objects "")
  foreach(_source ${ARGN})
    file(RELATIVE_PATH _name "${CMAKE_SOURCE_DIR}" "${_source}")
    set(_object "${CMAKE_BINARY_DIR}/cuda/${_name}.o")
    get_filename_component(_folder "${_object}" DIRECTORY)
    file(MAKE_DIRECTORY "${_folder}")
    add_custom_command(
      OUTPUT "${_object}"
      COMMAND "${WELKIN_NVCC}" -std=c++20 -O3 ${_codes} -Xcompiler=-fPIC,-Wall,-Wextra --expt-relaxed-constexpr -isystem
              "${TORCH_ROOT}/include" -isystem "${TORCH_ROOT}/include/torch/csrc/api/include" -isystem "${WELKIN_CUDART_INCLUDE}"
              "-I${CMAKE_SOURCE_DIR}/src" -MD -MF "${_object}.d" -c "${_source}" -o "${_object}"
      DEPENDS "${_source}" DEPFILE "${_object}.d" COMMENT "Building CUDA object ${_name}.o" VERBATIM)
    list(APPEND _objects "${_object}")
  endforeach()
  set(${out} ${_objects} PARENT_SCOPE)
endfunction()

file(GLOB _kernels CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/ops/cuda/*.cu")
file(GLOB _hosts CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/ops/cuda/*.cpp")
# The header alone: the library is in torch's wheel, and only the collectives of several GPUs need it.
find_path(WELKIN_NCCL_INCLUDE nccl.h HINTS "${TORCH_ROOT}/../nvidia/nccl/include" "${_nvcc_root}/include" NO_DEFAULT_PATH)
if(WELKIN_NCCL_INCLUDE)
  list(APPEND _hosts "${CMAKE_SOURCE_DIR}/src/parallel/cuda/nccl_backend.cpp")
else()
  message(STATUS "no nccl.h: runs on several GPUs are left out of libwelkin_cuda.so")
endif()
if(NOT _kernels)
  message(FATAL_ERROR "WELKIN_CUDA: src/ops/cuda/ holds no kernels")
endif()
welkin_cuda_objects(_objects ${_kernels})
set_source_files_properties(${_objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_custom_target(welkin_cuda_kernels DEPENDS ${_objects})  # they wait for none of the libraries that welkin_cuda links
add_library(welkin_cuda SHARED ${_objects} ${_hosts})
add_dependencies(welkin_cuda welkin_cuda_kernels)
set_target_properties(welkin_cuda PROPERTIES UNITY_BUILD ${WELKIN_UNITY} UNITY_BUILD_BATCH_SIZE 6 LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}" SKIP_BUILD_RPATH ON)
target_include_directories(welkin_cuda SYSTEM PRIVATE "${WELKIN_CUDART_INCLUDE}" "${_nvcc_root}/include")  # the second: crt/
target_link_libraries(welkin_cuda PRIVATE welkin_flags welkin welkin_lean_torch "${TORCH_LIB}/libc10_cuda.so" "${WELKIN_CUDART}")
if(WELKIN_NCCL_INCLUDE)
  target_include_directories(welkin_cuda SYSTEM PRIVATE "${WELKIN_NCCL_INCLUDE}")
endif()
