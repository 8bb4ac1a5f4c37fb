// SPDX-License-Identifier: Apache-2.0
// The data set that a configuration means: `era5` (yearly files of fields) or `nbody` (boxes), for one of the three splits.
#pragma once

#include <memory>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"

namespace welkin::data {

enum class Split { Train, Valid, Test };

// Opens files. Test reads inf_data_path (fields) and the validation box (boxes). config.rules says how samples are chosen.
// DataError when the data do not fit the configuration, ConfigError for an unknown `dataset`.
std::unique_ptr<Dataset> open_dataset(const config::RunConfig& config, Split split);

}  // namespace welkin::data
