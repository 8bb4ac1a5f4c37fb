// SPDX-License-Identifier: Apache-2.0
// What faults do to files and connections. It knows no steps and no table of faults.
#pragma once

#include <filesystem>
#include <optional>

namespace welkin::train {

enum class FileDamage { Truncate, FlipBit };

// Of the largest tensor file of the newest checkpoint in that folder: cuts it in half, or flips a bit in its middle. The file;
// nothing where there is none.
std::optional<std::filesystem::path> damage_newest_checkpoint(const std::filesystem::path& checkpoints, FileDamage damage);

// Shuts down every TCP connection of this process in both directions, as a link that goes away does. How many there were.
int drop_connections();

}  // namespace welkin::train
