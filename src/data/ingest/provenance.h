// SPDX-License-Identifier: Apache-2.0
// Provenance of the output: sources with sizes and hashes, the command, what was selected and left out, and the licence.
#pragma once

#include <string>
#include <vector>

#include "data/ingest/channels.h"
#include "data/ingest/options.h"
#include "data/ingest/source/inventory.h"

namespace welkin::data::ingest {

// JSON text. `notes` are those of the report.
std::string provenance_json(const std::vector<InputFile>& files, const std::vector<Channel>& channels, const std::string& reader,
                            const std::string& command, const std::vector<std::string>& notes);

// The user's text, and the list items about a licence or an attribution of every SOURCE.md beside an input; at most 16
// KiB.
std::string licence_text(const std::vector<InputFile>& files, const std::string& given);

}  // namespace welkin::data::ingest
