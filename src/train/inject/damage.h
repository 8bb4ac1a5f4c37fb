// SPDX-License-Identifier: Apache-2.0
// The damage that faults do to files and connections. It knows no steps and no table of faults.
#pragma once

#include <filesystem>
#include <optional>

namespace welkin::train {

enum class FileDamage { Truncate, FlipBit };

// Cuts the largest tensor file of the newest checkpoint in that folder in half, or flips a bit in its middle. Returns the file;
// nothing if there is none.
std::optional<std::filesystem::path> damage_newest_checkpoint(const std::filesystem::path& checkpoints, FileDamage damage);

// Shuts down every TCP connection of this process in both directions, like a link that fails. Returns their number.
int drop_connections();

}  // namespace welkin::train
