# SPDX-License-Identifier: Apache-2.0
# The texts of `welkin report`'s page as a source of the observe layer: our own of src/observe/report/page/, and dygraphs with its licence, which
# are installed and not part of this tree.
set(_hint "Install libjs-dygraphs (Debian, Ubuntu; tools/setup.sh does), or name a folder with dygraph.min.js, dygraph.min.css and copyright: -DWELKIN_DYGRAPHS=FOLDER")
find_path(WELKIN_DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs NO_DEFAULT_PATH DOC "folder of dygraphs, for the page of welkin report")
find_file(WELKIN_DYGRAPHS_LICENCE copyright PATHS "${WELKIN_DYGRAPHS}" /usr/share/doc/libjs-dygraphs NO_DEFAULT_PATH DOC "licence of dygraphs")
if(NOT WELKIN_DYGRAPHS OR NOT WELKIN_DYGRAPHS_LICENCE)
  message(FATAL_ERROR "dygraphs is missing, which the page of welkin report draws its curves with. ${_hint}")
endif()

set(_page "${CMAKE_SOURCE_DIR}/src/observe/report/page")
set(_scripts "${_page}/elements.js" "${_page}/curve_rows.js" "${_page}/plots.js" "${_page}/tables.js" "${_page}/timeline.js"
  "${_page}/pictures.js" "${_page}/scores.js" "${_page}/page.js")
set(_texts "style=${_page}/page.css")
foreach(_script ${_scripts})
  list(APPEND _texts "script=${_script}")
endforeach()
list(APPEND _texts "dygraphs_style=${WELKIN_DYGRAPHS}/dygraph.min.css" "dygraphs_script=${WELKIN_DYGRAPHS}/dygraph.min.js"
  "dygraphs_licence=${WELKIN_DYGRAPHS_LICENCE}")
set(_source "${CMAKE_BINARY_DIR}/page_parts.cpp")
add_custom_command(OUTPUT "${_source}"
  COMMAND "${CMAKE_COMMAND}" "-DTEXTS=${_texts}" "-DOUTPUT=${_source}" -DHEADER=observe/report/page_parts.h
    -DNAMESPACE=welkin::observe::page_parts -P "${CMAKE_SOURCE_DIR}/cmake/EmbedTexts.cmake"
  DEPENDS "${CMAKE_SOURCE_DIR}/cmake/EmbedTexts.cmake" "${_page}/page.css" ${_scripts} "${WELKIN_DYGRAPHS}/dygraph.min.js"
    "${WELKIN_DYGRAPHS}/dygraph.min.css" "${WELKIN_DYGRAPHS_LICENCE}"
  COMMENT "Embedding the texts of the report's page" VERBATIM)
target_sources(welkin_observe PRIVATE "${_source}")
set_source_files_properties("${_source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
