// SPDX-License-Identifier: Apache-2.0
// What `welkin init --task box` finds out about boxes.
#pragma once

#include <filesystem>
#include <string>

#include "apps/data/ingest_flags.h"
#include "apps/init/preset.h"

namespace welkin::apps {

// Two fields are an input and a target; of more, or one, only the user knows. Returns what was assumed, nothing where both were
// given. ConfigError with the names of the fields otherwise.
std::string name_box_fields(IngestArguments& arguments);
// Of the training files in a folder. DataError where a box is too thin for the U-Net.
BoxFacts box_facts(const std::filesystem::path& data);

}  // namespace welkin::apps
