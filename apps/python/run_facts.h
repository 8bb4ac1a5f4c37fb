// SPDX-License-Identifier: Apache-2.0
// What a run and its data are, as JSON, for Python's dicts.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"

namespace welkin::apps::python {

// Every key that has an effect, nested by component as in config.yaml, with numbers, switches, lists and null as such. Numbers
// that JSON has not are text: "inf".
nlohmann::ordered_json config_json(const config::RunConfig& config);

// {"input": {"channels", "units", "shape", ...}, "target": {...}}, each with what normalization_json() says of it; "geometry":
// "plane", "sphere" or "box"; "latitude", "longitude" in degrees, empty where the files do not say; "newest": the first input
// channel of the newest step; "earlier": for each target channel the input channel that is the same quantity, -1 where there is
// none; "fill": what input points without a value become, by channel.
nlohmann::ordered_json spec_json(const data::SampleSpec& spec);

}  // namespace welkin::apps::python
