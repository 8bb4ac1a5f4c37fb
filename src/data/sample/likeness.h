// SPDX-License-Identifier: Apache-2.0
// Compares what two data sets or files mean: a model trained on one holds for the other only if they agree. A difference is a
// sentence's object, "units of t2m: K and degC"; empty: there is none. A fact that one of them omits is no difference.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/sample/dataset.h"

namespace welkin::data {

// Degrees of latitude or longitude.
bool are_same_places(const std::vector<double>& one, const std::vector<double>& other);
std::string difference_of_places(std::string_view name, const std::vector<double>& one, const std::vector<double>& other);
std::string difference_of_grids(const std::vector<double>& one_latitude, const std::vector<double>& one_longitude,
                                const std::vector<double>& other_latitude, const std::vector<double>& other_longitude);
// Units of the channels `names`, as far as there are some.
std::string difference_of_units(const std::vector<std::string>& names, const std::vector<std::string>& one,
                                const std::vector<std::string>& other);
// Times in hours, 0: not known. All months count as equally long.
std::string difference_of_hours(std::string_view name, double one, double other);

// Channels, units, shape, places and lead. Not normalisation, nor where points have no value.
std::string difference_of_samples(const SampleSpec& one, const SampleSpec& other);

}  // namespace welkin::data
