// SPDX-License-Identifier: Apache-2.0
// Selects the rows, columns and channels of a file of fields for samples, and describes the rest. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/datasets/era5_options.h"
#include "data/datasets/field_file.h"
#include "data/sample/channels/channel_roles.h"

namespace welkin::data {

struct FieldSelection {
  FieldWindow window;                  // the crop
  std::vector<int64_t> input, target;  // channels of the file, in the order of the sample
  std::vector<ChannelRole> roles;      // empty where none are given
};

// The names of a file's channels: those of the options, else its own; numbered where neither says.
std::vector<std::string> file_channel_names(const FieldFacts& facts, const Era5Options& options);

// DataError for a crop or a number of channels that the file does not have, ConfigError for a name that it does not have, and for
// names or numbers that contradict the roles of the channels.
FieldSelection select_fields(const FieldFacts& facts, const Era5Options& options);

// A warning about data that is left out although no key chose so; empty where nothing is left out.
std::string left_out_text(const FieldFacts& facts, const FieldSelection& selection, const Era5Options& options);
// A line of the log about the data that keys chose; empty where none did.
std::string chosen_text(const FieldFacts& facts, const FieldSelection& selection, const Era5Options& options);

// The channels as runs that lie one after the other in the file.
std::vector<ChannelRun> channel_runs(const std::vector<int64_t>& channels);

}  // namespace welkin::data
