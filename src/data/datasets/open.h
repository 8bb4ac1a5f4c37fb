// SPDX-License-Identifier: Apache-2.0
// The data sets that come with Welkin, opened as a configuration says, for one of the three splits.
#pragma once

#include <memory>

#include "config/schema/run_config.h"
#include "data/datasets/era5_options.h"
#include "data/sample/dataset.h"

namespace welkin::data {

enum class Split { Train, Valid, Test };

// config.rules says how samples are chosen. DataError when the data do not fit the configuration; ConfigError for keys that are
// missing, and for a split that no key names.
Era5Options fields_options(const config::RunConfig& config, Split split);
std::unique_ptr<Dataset> open_fields(const config::RunConfig& config, Split split);  // era5: Test reads inf_data_path
std::unique_ptr<Dataset> open_boxes(const config::RunConfig& config, Split split);   // nbody: has no Test

}  // namespace welkin::data
