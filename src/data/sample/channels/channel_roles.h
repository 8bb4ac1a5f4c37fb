// SPDX-License-Identifier: Apache-2.0
// The role of each channel in a file of fields. Input and target of a sample follow from the roles of the channels. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::data {

enum class ChannelRole {
  Prognostic,  // "prognostic": input and target; a rollout feeds it back
  Forcing,     // "forcing": input only, from the file; a rollout takes it from there
  Diagnostic,  // "diagnostic": target only
  Static,      // "static": input only, and the same at all times
};

// Nullopt for other words.
std::optional<ChannelRole> parse_role(std::string_view name);
std::string_view name_of(ChannelRole role);
constexpr bool is_input(ChannelRole role) { return role != ChannelRole::Diagnostic; }
constexpr bool is_target(ChannelRole role) { return role == ChannelRole::Prognostic || role == ChannelRole::Diagnostic; }

// One role for each channel of a file: those of `entries` (channel=role, the key `roles`), else those that the file says
// (`stored`, empty or one word each), else prognostic. Empty where neither says anything. ConfigError for a channel that there
// is not or a word that is no role, which lists what there is.
std::vector<ChannelRole> channel_roles(const std::vector<std::string>& channels, const std::vector<std::string>& stored,
                                       const std::vector<std::string>& entries);

// Channels of the file, in the order of a sample: prognostic ones first, as they are both input and target, then those that are
// only input (forcing, static) or only target.
std::vector<int64_t> inputs_of(const std::vector<ChannelRole>& roles);
std::vector<int64_t> targets_of(const std::vector<ChannelRole>& roles);

// "prognostic: t2m z500; forcing: sst", for messages and the log.
std::string roles_text(const std::vector<std::string>& channels, const std::vector<ChannelRole>& roles);

// ConfigError where channels that were chosen by name contradict their roles: an input that is diagnostic, a target that is
// forcing or static; and where no input or no target is left. It lists the channels and the roles.
void check_chosen(const std::vector<std::string>& channels, const std::vector<ChannelRole>& roles,
                  const std::vector<int64_t>& input, const std::vector<int64_t>& target);

}  // namespace welkin::data
