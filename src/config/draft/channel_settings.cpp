// SPDX-License-Identifier: Apache-2.0
#include "config/draft/channel_settings.h"

#include <charconv>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/glob.h"
#include "core/text.h"

namespace welkin::config {
namespace {

[[noreturn]] void refuse_channel(std::string_view key, std::string_view pattern, const std::vector<std::string>& channels) {
  throw ConfigError("data", cat("no channel of this name: key=", key, ", channel=", pattern),
                    cat("There are: ", join(channels, ", ")));
}

double number_of(const std::string& text, std::string_view key, const std::string& channel) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc() && end == text.data() + text.size() && std::isfinite(value)) return value;
  throw ConfigError("data", cat("no number: key=", key, ", channel=", channel, ", value=", text),
                    cat("Write for instance ", key, ": [", channel, "=1.5]"));
}

}  // namespace

std::optional<ChannelSetting> parse_channel_setting(std::string_view text) {
  const size_t at = text.find('=');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size()) return {};
  return ChannelSetting{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

std::optional<WeightedFolder> parse_data_set(const std::string& entry) {
  const auto equals = entry.rfind('=');
  WeightedFolder folder{.folder = entry.substr(0, equals)};
  if (folder.folder.empty()) return {};
  if (equals == std::string::npos) return folder;
  const char* end_of_text = entry.data() + entry.size();
  const auto [end, problem] = std::from_chars(entry.data() + equals + 1, end_of_text, folder.weight);
  const bool good = problem == std::errc() && end == end_of_text && std::isfinite(folder.weight) && folder.weight > 0;
  return good ? std::optional(folder) : std::nullopt;
}

std::vector<std::optional<std::string>> settings_of(const std::vector<std::string>& entries, std::string_view key,
                                                    const std::vector<std::string>& channels) {
  std::vector<std::optional<std::string>> values(channels.size());
  std::map<std::string, std::string> given;
  for (const std::string& entry : entries) {
    const auto setting = parse_channel_setting(entry);
    if (!setting) throw ConfigError("data", cat("not channel=value: key=", key, ", entry=", entry), "Write channel=value");
    if (const auto [before, is_new] = given.emplace(setting->channel, setting->value);
        !is_new && before->second != setting->value) {
      throw ConfigError("data",
                        cat("one channel has two values: key=", key, ", channel=", setting->channel, ", values=", before->second,
                            " and ", setting->value),
                        "Leave one of them out; of a pattern and a name that it fits the later one holds");
    }
    bool fits = false;
    for (size_t c = 0; c < channels.size(); ++c) {
      if (!matches_glob(setting->channel, channels[c])) continue;
      values[c] = setting->value;
      fits = true;
    }
    if (!fits) refuse_channel(key, setting->channel, channels);
  }
  return values;
}

std::vector<std::optional<double>> number_settings_of(const std::vector<std::string>& entries, std::string_view key,
                                                      const std::vector<std::string>& channels) {
  const auto texts = settings_of(entries, key, channels);
  std::vector<std::optional<double>> values(texts.size());
  for (size_t c = 0; c < texts.size(); ++c) {
    if (texts[c]) values[c] = number_of(*texts[c], key, channels[c]);
  }
  return values;
}

std::vector<bool> chosen_channels(const std::vector<std::string>& patterns, std::string_view key,
                                  const std::vector<std::string>& channels) {
  std::vector<bool> chosen(channels.size());
  for (const std::string& pattern : patterns) {
    bool fits = false;
    for (size_t c = 0; c < channels.size(); ++c) {
      if (!matches_glob(pattern, channels[c])) continue;
      chosen[c] = true;
      fits = true;
    }
    if (!fits) refuse_channel(key, pattern, channels);
  }
  return chosen;
}

}  // namespace welkin::config
