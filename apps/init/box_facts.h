// SPDX-License-Identifier: Apache-2.0
// Facts about boxes for `welkin init --task box`.
#pragma once

#include <filesystem>
#include <string>

#include "apps/data/ingest_flags.h"
#include "apps/init/preset.h"

namespace welkin::apps {

// Two fields are an input and a target. With more fields, or one, the user has to choose. Returns a note of assumptions, empty
// where both were given. Otherwise a ConfigError with the names of the fields.
std::string name_box_fields(IngestArguments& arguments);
// Facts of the training files in a folder. DataError where a box is too thin for the U-Net.
BoxFacts box_facts(const std::filesystem::path& data);

}  // namespace welkin::apps
