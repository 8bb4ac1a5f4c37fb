# SPDX-License-Identifier: Apache-2.0
# welkin_add_plugin(name sources...): a shared object lib<name>.so for `welkin --plugin`, which defines
# extern "C" void welkin_register(welkin::train::Registries&). It finds torch and Welkin in the process that opens it: no rpath. It says which
# headers it was built with.
if(NOT WELKIN_PLUGIN_STAMP)
  set(WELKIN_PLUGIN_STAMP "${CMAKE_CURRENT_LIST_DIR}/plugin_stamp.cpp")
endif()
# In this tree plug-ins share the library's precompiled headers, so they see torch as it does (cmake/lean_torch/README.md).
function(welkin_add_plugin name)
  add_library(${name} MODULE ${ARGN} "${WELKIN_PLUGIN_STAMP}")
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PRIVATE Welkin::welkin $<IF:$<TARGET_EXISTS:welkin_lean_torch>,welkin_lean_torch,welkin_torch>)
  set_target_properties(${name} PROPERTIES SKIP_BUILD_RPATH ON CXX_EXTENSIONS OFF)
endfunction()
