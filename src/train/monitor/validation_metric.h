// SPDX-License-Identifier: Apache-2.0
// The metrics of a validation by name: val_loss, and for fields val_rmse_<channel>. A smaller value is better in each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"

namespace welkin::train {

inline constexpr const char* kValidationLoss = "val_loss";

struct ValidationMetric {
  std::string name = kValidationLoss;
  std::optional<int64_t> channel{};  // the channel of a latitude-weighted RMSE; nothing: the loss
};

// All metrics that a validation on such samples can report.
std::vector<ValidationMetric> validation_metrics(const data::SampleSpec& spec);

// The metric of this name, or tag in TensorBoard (Loss/valid, RMSE(t2m)/valid). ConfigError naming `key` and all names.
ValidationMetric find_metric(const data::SampleSpec& spec, std::string_view key, const std::string& name);

// The metrics that best_metric and early_stopping name; ConfigError as above.
ValidationMetric best_metric(const config::RunConfig& config, const data::SampleSpec& spec);
std::optional<ValidationMetric> early_stopping_metric(const config::RunConfig& config, const data::SampleSpec& spec);

// Throws their errors.
inline void check_metrics(const config::RunConfig& config, const data::SampleSpec& spec) {
  best_metric(config, spec);
  early_stopping_metric(config, spec);
}

// The channels of both metrics, ascending, without the first channel, which every validation of fields reports.
std::vector<int64_t> watched_channels(const config::RunConfig& config, const data::SampleSpec& spec);

}  // namespace welkin::train
