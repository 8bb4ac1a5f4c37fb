// SPDX-License-Identifier: Apache-2.0
// Keys for single channels: lists of channel=value, where the channel may be a pattern with * and ?. If several entries fit a
// channel, the last one counts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::config {

struct ChannelSetting {
  std::string channel;  // name or pattern
  std::string value;
};

// One entry; nullopt where it is not channel=value.
std::optional<ChannelSetting> parse_channel_setting(std::string_view text);

// An entry of the key datasets, FOLDER or FOLDER=weight; nullopt where the weight is no number above 0 or there is no folder.
struct WeightedFolder {
  std::string folder;
  double weight = 1;
};
std::optional<WeightedFolder> parse_data_set(const std::string& entry);

// For every channel the value of the last entry that fits it, nullopt where none does. ConfigError for an entry that is not
// channel=value or fits no channel; the text names `key` and the channels.
std::vector<std::optional<std::string>> settings_of(const std::vector<std::string>& entries, std::string_view key,
                                                    const std::vector<std::string>& channels);

// The same as numbers. ConfigError where one is not a finite number.
std::vector<std::optional<double>> number_settings_of(const std::vector<std::string>& entries, std::string_view key,
                                                      const std::vector<std::string>& channels);

// True for each of `channels` that a list of names and patterns chooses. ConfigError for an entry that fits none.
std::vector<bool> chosen_channels(const std::vector<std::string>& patterns, std::string_view key,
                                  const std::vector<std::string>& channels);

}  // namespace welkin::config
