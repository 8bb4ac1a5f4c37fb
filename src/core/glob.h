// SPDX-License-Identifier: Apache-2.0
// Patterns of names, as shells write them: * stands for any text, also for dots and for none, ? for one character.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin {

// The texts that the stars and question marks of `pattern` match in the whole of `name`, from left to right. A star takes as
// little as it can. Nullopt where it does not match. The time is at most the product of the lengths.
std::optional<std::vector<std::string>> glob_match(std::string_view pattern, std::string_view name);

bool matches_glob(std::string_view pattern, std::string_view name);

// `pattern` with its stars and question marks replaced by `parts`, in order; those that are left over stay as they are.
std::string glob_filled(std::string_view pattern, const std::vector<std::string>& parts);

}  // namespace welkin
