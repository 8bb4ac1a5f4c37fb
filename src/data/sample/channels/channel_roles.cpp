// SPDX-License-Identifier: Apache-2.0
#include "data/sample/channels/channel_roles.h"

#include <array>
#include <utility>

#include "config/draft/channel_settings.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::data {
namespace {

constexpr std::array<std::pair<std::string_view, ChannelRole>, 4> kRoles{{{"prognostic", ChannelRole::Prognostic},
                                                                          {"forcing", ChannelRole::Forcing},
                                                                          {"diagnostic", ChannelRole::Diagnostic},
                                                                          {"static", ChannelRole::Static}}};

ChannelRole role_of(std::string_view word, std::string_view source, const std::string& channel) {
  if (const auto role = parse_role(word)) return *role;
  throw ConfigError("data", cat("no role of a channel: ", source, ", channel=", channel, ", role=", word),
                    "Choose prognostic, forcing, diagnostic or static");
}

void append(std::vector<int64_t>& places, const std::vector<ChannelRole>& roles, auto&& wanted) {
  for (size_t c = 0; c < roles.size(); ++c) {
    if (wanted(roles[c])) places.push_back(static_cast<int64_t>(c));
  }
}

}  // namespace

std::optional<ChannelRole> parse_role(std::string_view name) {
  for (const auto& [word, role] : kRoles) {
    if (word == name) return role;
  }
  return {};
}

std::string_view name_of(ChannelRole role) { return kRoles[static_cast<size_t>(role)].first; }

std::vector<ChannelRole> channel_roles(const std::vector<std::string>& channels, const std::vector<std::string>& stored,
                                       const std::vector<std::string>& entries) {
  if (stored.empty() && entries.empty()) return {};
  const auto settings = config::settings_of(entries, "roles", channels);
  std::vector<ChannelRole> roles;
  for (size_t c = 0; c < channels.size(); ++c) {
    if (settings[c]) {
      roles.push_back(role_of(*settings[c], "key=roles", channels[c]));
    } else {
      roles.push_back(stored.empty() ? ChannelRole::Prognostic : role_of(stored[c], "attribute=roles", channels[c]));
    }
  }
  return roles;
}

std::vector<int64_t> inputs_of(const std::vector<ChannelRole>& roles) {
  std::vector<int64_t> places;
  append(places, roles, [](ChannelRole role) { return role == ChannelRole::Prognostic; });
  append(places, roles, [](ChannelRole role) { return is_input(role) && role != ChannelRole::Prognostic; });
  return places;
}

std::vector<int64_t> targets_of(const std::vector<ChannelRole>& roles) {
  std::vector<int64_t> places;
  append(places, roles, [](ChannelRole role) { return role == ChannelRole::Prognostic; });
  append(places, roles, [](ChannelRole role) { return role == ChannelRole::Diagnostic; });
  return places;
}

std::string roles_text(const std::vector<std::string>& channels, const std::vector<ChannelRole>& roles) {
  std::vector<std::string> parts;
  for (const auto& [word, role] : kRoles) {
    std::vector<std::string> names;
    for (size_t c = 0; c < roles.size(); ++c) {
      if (roles[c] == role) names.push_back(channels[c]);
    }
    if (!names.empty()) parts.push_back(cat(word, ": ", join(names, " ")));
  }
  return join(parts, "; ");
}

void check_chosen(const std::vector<std::string>& channels, const std::vector<ChannelRole>& roles,
                  const std::vector<int64_t>& input, const std::vector<int64_t>& target) {
  if (input.empty() || target.empty()) {
    throw ConfigError(
        "data",
        cat("the roles leave no channel to ", target.empty() ? "predict" : "predict from", ": ", roles_text(channels, roles)),
        target.empty() ? "Give a channel the role prognostic or diagnostic with the key roles"
                       : "Give a channel the role prognostic, forcing or static with the key roles");
  }
  std::vector<std::string> wrong;
  for (const int64_t c : input) {
    const auto place = static_cast<size_t>(c);
    if (!is_input(roles[place])) wrong.push_back(cat("input ", channels[place], " is ", name_of(roles[place])));
  }
  for (const int64_t c : target) {
    const auto place = static_cast<size_t>(c);
    if (!is_target(roles[place])) wrong.push_back(cat("target ", channels[place], " is ", name_of(roles[place])));
  }
  if (wrong.empty()) return;
  throw ConfigError("data",
                    cat("chosen channels contradict their roles: ", join(wrong, ", "), " (", roles_text(channels, roles), ")"),
                    "Leave in_channels, out_channels and numbers of channels out, or give other roles with the key roles");
}

}  // namespace welkin::data
