# SPDX-License-Identifier: Apache-2.0
# Outlines of land for maps: Natural Earth 1:110m (public domain), from the shapefile in the PyPI package geopandas 0.14.4, which tools/setup.sh puts into
# build/natural_earth. A build without it draws maps without outlines, and says so.
set(WELKIN_NATURAL_EARTH "${CMAKE_SOURCE_DIR}/build/natural_earth/naturalearth_lowres.shp" CACHE FILEPATH "shapefile of land, for outlines on maps")
set(_outlines "${CMAKE_BINARY_DIR}/outlines.bin")
if(EXISTS "${WELKIN_NATURAL_EARTH}")
  add_custom_command(OUTPUT "${_outlines}"
    COMMAND "${WELKIN_PYTHON}" "${CMAKE_SOURCE_DIR}/tools/outlines.py" "${WELKIN_NATURAL_EARTH}" "${_outlines}"
    DEPENDS "${CMAKE_SOURCE_DIR}/tools/outlines.py" "${WELKIN_NATURAL_EARTH}" VERBATIM)
else()
  message(STATUS "Maps have no outlines of land: no ${WELKIN_NATURAL_EARTH} (tools/setup.sh: require_outlines)")
  file(CONFIGURE OUTPUT "${_outlines}" CONTENT "")
endif()
set(_source "${CMAKE_BINARY_DIR}/outline_data.cpp")
add_custom_command(OUTPUT "${_source}"
  COMMAND "${CMAKE_COMMAND}" "-DTEXTS=outline_bytes=${_outlines}" "-DOUTPUT=${_source}" -DHEADER=observe/image/outline_data.h
    -DNAMESPACE=welkin::observe::image -P "${CMAKE_SOURCE_DIR}/cmake/EmbedTexts.cmake"
  DEPENDS "${CMAKE_SOURCE_DIR}/cmake/EmbedTexts.cmake" "${_outlines}" VERBATIM)
target_sources(welkin_observe PRIVATE "${_source}")
set_source_files_properties("${_source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
