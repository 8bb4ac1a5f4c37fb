// SPDX-License-Identifier: Apache-2.0
// The boundary between libwelkin.so and libwelkin_ingest.so, which is linked to ecCodes and netCDF-C and opened when needed.
// Plain C: no C++ type, exception or allocation crosses it. Every text has a fixed capacity and ends in a NUL; every array is the
// caller's.
#ifndef WELKIN_DATA_INGEST_COMPONENT_ABI_H
#define WELKIN_DATA_INGEST_COMPONENT_ABI_H

#include <stdint.h>

#define WELKIN_INGEST_ABI 2
#define WELKIN_INGEST_ENTRY "welkin_ingest_component"

// Limits of one file. Both sides refuse a file that holds more.
#define WELKIN_INGEST_MAX_VARIABLES 4096
#define WELKIN_INGEST_MAX_GRIDS 256
#define WELKIN_INGEST_MAX_PLANES (INT64_C(1) << 24)  // a year of hours of 50 variables on 37 levels
#define WELKIN_INGEST_MAX_AXIS (INT64_C(1) << 20)    // points along one axis
#define WELKIN_INGEST_MAX_POINTS (INT64_C(1) << 28)  // points of a plane

#ifdef __cplusplus
extern "C" {
#endif

typedef struct welkin_ingest_source welkin_ingest_source;  // one open file, used by one thread at a time

enum welkin_ingest_format { WELKIN_INGEST_GRIB = 1, WELKIN_INGEST_NETCDF = 2 };

// The quantity of a plane's level.
enum welkin_ingest_level { WELKIN_INGEST_LEVEL_NONE = 0, WELKIN_INGEST_LEVEL_HPA = 1, WELKIN_INGEST_LEVEL_OTHER = 2 };

typedef struct {
  char name[64];        // CF short name: "t2m", "tas"
  char other_name[64];  // a second name by which users know it (GRIB shortName "2t"); may be empty
  char long_name[256];
  char units[64];
  char level_type[64];   // "isobaricInhPa", "surface", a dimension's name; empty without levels
  char time_units[128];  // "hours since 1900-01-01 00:00:00"; empty for a variable without time
  char calendar[32];     // as in the file; empty = standard
  char skipped[384];     // not empty: the reason why this variable has no planes
  int32_t level_kind;    // welkin_ingest_level
  int32_t grid;          // index of its grid, -1 when skipped
  int32_t is_minor;      // skipped, and of fewer than two dimensions or of text: hardly meant as a field
} welkin_ingest_variable;

typedef struct {
  int64_t height, width;  // latitudes, longitudes
} welkin_ingest_grid;

// One horizontal field: 32 bytes, so that an archive of a million fields costs 32 MB.
typedef struct {
  int32_t variable;
  int32_t member;   // ensemble member, 0 when there is none
  double level;     // hPa or as the level type says; 0 when there is none
  double time;      // in the variable's time_units
  int64_t address;  // for read_plane; stays valid when the file is opened again
} welkin_ingest_plane;

typedef struct {
  int64_t num_variables, num_grids, num_planes;
} welkin_ingest_counts;

// All functions return 0, or not 0 after writing a message to `error`.
typedef struct {
  uint32_t abi;          // WELKIN_INGEST_ABI
  const char* versions;  // of the libraries, for provenance
  int (*open)(const char* path, int format, welkin_ingest_source** out, char* error, int64_t error_capacity);
  void (*close)(welkin_ingest_source* source);
  // Reads every header; needed once before the three calls below, not before read_plane.
  int (*scan)(welkin_ingest_source* source, welkin_ingest_counts* out, char* error, int64_t error_capacity);
  int (*variables)(welkin_ingest_source* source, welkin_ingest_variable* out, int64_t capacity, char* error,
                   int64_t error_capacity);
  int (*planes)(welkin_ingest_source* source, int64_t first, int64_t count, welkin_ingest_plane* out, char* error,
                int64_t error_capacity);
  int (*grid)(welkin_ingest_source* source, int64_t index, welkin_ingest_grid* out, char* error, int64_t error_capacity);
  // The coordinates in degrees in the file's order; capacities as told by `grid`.
  int (*coordinates)(welkin_ingest_source* source, int64_t index, double* latitude, int64_t height, double* longitude,
                     int64_t width, char* error, int64_t error_capacity);
  // Physical values (unpacked) as rows of latitude in the file's order; points without a value are NaN. capacity = height *
  // width.
  int (*read_plane)(welkin_ingest_source* source, int64_t address, float* values, int64_t capacity, char* error,
                    int64_t error_capacity);
} welkin_ingest_api;

// The entry point. Null when the component does not know this version.
const welkin_ingest_api* welkin_ingest_component(uint32_t abi);

#ifdef __cplusplus
}
#endif

#endif  // WELKIN_DATA_INGEST_COMPONENT_ABI_H
