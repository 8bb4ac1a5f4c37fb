// SPDX-License-Identifier: Apache-2.0
// A run and its data as JSON, for Python's dicts.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"

namespace welkin::apps::python {

// Every key that has an effect, nested by component as in config.yaml, with numbers, switches, lists and null as such. Numbers
// without a form in JSON are text: "inf".
nlohmann::ordered_json config_json(const config::RunConfig& config);

// {"input": {"channels", "units", "shape", ...}, "target": {...}}, each with the fields of normalization_json(); "geometry":
// "plane", "sphere" or "box"; "latitude", "longitude" in degrees, empty where the files have none; "newest": the first input
// channel of the newest step; "earlier": for each target channel the input channel of the same quantity, -1 without
// one; "fill": the value of input points without data, by channel.
nlohmann::ordered_json spec_json(const data::SampleSpec& spec);

}  // namespace welkin::apps::python
