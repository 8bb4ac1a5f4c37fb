# SPDX-License-Identifier: Apache-2.0
# The CPU kernels of src/ops/cpu/: each instruction set has files and flags of its own, so none of them may join a unity batch.
set(_folder "${CMAKE_SOURCE_DIR}/src/ops/cpu")
get_target_property(_sources welkin_ops SOURCES)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  list(FILTER _sources EXCLUDE REGEX "/ops/cpu/other\\.cpp$")
else()
  list(FILTER _sources EXCLUDE REGEX "/ops/cpu/(x86|.*_avx2|.*_avx512|.*_avx512bf16)\\.cpp$")
endif()
set_target_properties(welkin_ops PROPERTIES SOURCES "${_sources}")

# Multiply-adds may be fused here: these files have bounds of their own (docs/numerics.md), and their speed is the fused form's.
set(_fast -O3 -ffp-contract=fast -fno-math-errno)
file(GLOB _kernels CONFIGURE_DEPENDS "${_folder}/*.cpp")
foreach(_kernel ${_kernels})
  set(_flags ${_fast})
  if(_kernel MATCHES "_avx2\\.cpp$")
    list(APPEND _flags -mavx2 -mfma)
  elseif(_kernel MATCHES "_avx512(bf16)?\\.cpp$")
    list(APPEND _flags -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  endif()
  if(_kernel MATCHES "/normal_")
    list(APPEND _flags -ffp-contract=off) # what they give is the C library's, bit by bit
  endif()
  if(_kernel MATCHES "_avx512bf16\\.cpp$")
    list(APPEND _flags -mavx512bf16)
  endif()
  set_source_files_properties("${_kernel}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS "${_flags}")
endforeach()
