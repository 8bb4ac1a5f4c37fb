// SPDX-License-Identifier: Apache-2.0
// Options of a data set of fields.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/cf/file_times.h"
#include "data/datasets/field_file.h"
#include "data/datasets/field_source.h"
#include "data/sample/rules.h"

namespace welkin::data {

struct Era5Options {
  std::filesystem::path folder{};
  int64_t height = 0, width = 0;                                   // of the crop; 0 = the whole grid
  int64_t multiple = 1;                                            // the model takes edges divisible by this: for remedies
  std::optional<std::array<int64_t, 2>> crop{};                    // its first row and column; 0 and 0 when not given
  std::vector<double> crop_latitude{}, crop_longitude{};           // {south, north} and {west, east} instead; empty = not given
  int64_t lead = 1;                                                // target minus newest input, steps
  int64_t history = 1;                                             // input steps, oldest first in the channels
  int64_t in_channels = 0;                                         // first channels of the file that enter; 0 = all
  int64_t out_channels = 0;                                        // first channels of the file that are predicted; 0 = all
  std::vector<std::string> in_names{}, out_names{};                // instead of the first ones: these, in this order
  std::optional<int64_t> limit{};                                  // at most so many samples: the first ones
  std::filesystem::path means{}, stds{};                           // npy; empty = fields are already scaled
  std::vector<std::string> channel_names{};                        // replace the files' names; empty = those, or numbers
  std::vector<double> input_clip{}, target_clip{};                 // {low, high}
  std::vector<int64_t> input_log{}, target_log{};                  // channels of the sample that become log(1 + x)
  std::vector<std::string> roles{}, hole_fill{}, normalization{};  // channel=value: the keys of these names
  std::optional<FieldFacts> like{};                                // the channels are those of these files, by name
  bool hold = false;                                               // all values in memory
  TimeKeys time{};                                                 // of files that do not say the units of their times
  Rules rules = Rules::Corrected;
  // Selection from an archive with an array for each variable (data/cf/archive.h). Named variables replace training files.
  std::vector<std::string> variables{}, times{};
  std::vector<double> levels{};
  std::string times_key = "times";

  FieldSource source() const {
    return {
        .folder = folder, .variables = variables, .levels = levels, .times = times, .times_key = times_key, .time_keys = time};
  }
};

}  // namespace welkin::data
