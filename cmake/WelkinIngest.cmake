# SPDX-License-Identifier: Apache-2.0
# libwelkin_ingest.so from src/data/ingest/component/: reads GRIB and netCDF with the system's ecCodes and netCDF-C. Optional, opened at run time
# beside libwelkin.so, and no torch in it: a machine without these two libraries has every verb but `data ingest`.
find_path(WELKIN_ECCODES_INCLUDE eccodes.h)
find_library(WELKIN_ECCODES eccodes)
find_path(WELKIN_NETCDF_INCLUDE netcdf.h)
find_library(WELKIN_NETCDF netcdf)
file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/data/ingest/component/*.cpp")
if(NOT WELKIN_ECCODES_INCLUDE OR NOT WELKIN_ECCODES OR NOT WELKIN_NETCDF_INCLUDE OR NOT WELKIN_NETCDF)
  message(STATUS "ecCodes or netCDF-C is not installed: `welkin data ingest` will not be built")
elseif(_sources)
  add_library(welkin_ingest SHARED ${_sources})
  set_target_properties(welkin_ingest PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}" SKIP_BUILD_RPATH ON)
  target_include_directories(welkin_ingest SYSTEM PRIVATE "${WELKIN_ECCODES_INCLUDE}" "${WELKIN_NETCDF_INCLUDE}")
  target_link_libraries(welkin_ingest PRIVATE welkin_flags welkin_core "${WELKIN_ECCODES}" "${WELKIN_NETCDF}")
  target_link_options(welkin_ingest PRIVATE LINKER:--no-undefined)
endif()
