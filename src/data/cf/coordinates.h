// SPDX-License-Identifier: Apache-2.0
// Which arrays of a training file hold its times, latitudes, longitudes and channel names: by name, or by what the CF conventions
// say of coordinates (standard_name, axis, units), or by the name of an HDF5 dimension scale. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/storage/stored_array.h"

namespace welkin::data {

enum class CoordinateKind { Time, Latitude, Longitude };

// The one-dimensional array of `length` values that is this coordinate; an array of our own name (time, latitude, longitude) of
// any size comes first. Empty: there is none.
std::string find_coordinate(const ArrayFile& file, CoordinateKind kind, int64_t length);

// Degrees of latitude or longitude along an axis of `fields` of that length.
struct PlaceAxis {
  std::vector<double> degrees;  // empty: the file does not say
  std::string problem;          // why an array that looks like it was not taken
};
// `shape`: rows and columns. Two-dimensional places of a grid whose rows are parallels (columns meridians) are taken too.
// DataError when an array does not fit, or holds what is no latitude or longitude.
PlaceAxis read_places(const ArrayFile& file, CoordinateKind kind, const Extents& shape);

// The attribute `channels` of `object`; else, with one text per channel, its attribute `channel`, `variables`, `variable` or
// `band`, or an array of texts of one of these names.
std::vector<std::string> find_channel_names(const ArrayFile& file, const std::string& object, int64_t channels);

// True if the array holds times, latitudes or longitudes, of any shape.
bool is_coordinate(const ArrayFile& file, CoordinateKind kind, const std::string& name);

// True if the array is one of HDF5's own that stands for a dimension without values.
bool is_dimension_placeholder(const ArrayFile& file, const std::string& name);

}  // namespace welkin::data
