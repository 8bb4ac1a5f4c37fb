// SPDX-License-Identifier: Apache-2.0
// The configuration that `welkin init` writes: YAML with a comment on every line that users are likely to change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace welkin::apps {

// Values that depend on the machine and the data.
struct TrainingSize {
  int64_t batch = 1;
  int64_t steps = 1;    // of a forecast
  int64_t samples = 1;  // of an epoch
  std::string memory;   // "0.3 GiB of 7.7 GiB"
};

struct ForecastFacts {
  std::vector<std::string> channels, units;
  int64_t height = 0, width = 0, patch = 1;
  std::vector<std::string> roles;    // of the channels; empty: all are prognostic
  std::vector<std::string> statics;  // static channels, input alone
  bool has_test = false;
  std::string step;  // "6 h"
};

struct BoxFacts {
  std::vector<std::string> input, target;
  int64_t train_edge = 0, valid_edge = 0;  // the longest box edge
  int64_t crop = 8, scales = 2;
  std::vector<int64_t> vector_channels;
};

// `commands`: next commands to run, as comments at the top.
std::string forecast_preset(const ForecastFacts& facts, const TrainingSize& size, const std::vector<std::string>& commands);
std::string box_preset(const BoxFacts& facts, const TrainingSize& size, const std::vector<std::string>& commands);

}  // namespace welkin::apps
