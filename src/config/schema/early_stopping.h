// SPDX-License-Identifier: Apache-2.0
// The key early_stopping: [metric, patience] or [metric, patience, min_delta].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace welkin::config {

struct EarlyStopping {
  std::string metric;    // as given; the metrics are known once the data are open
  int64_t patience = 0;  // validations in a row without improvement after which a run ends; at least 1
  double min_delta = 0;  // a value counts as better when it is smaller than the best by more than this
};

// Parses the list. Nullopt where it is empty, or not of this form: `problem` then gets the error.
std::optional<EarlyStopping> parse_early_stopping(const std::vector<std::string>& entries, std::string& problem);

}  // namespace welkin::config
