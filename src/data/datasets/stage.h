// SPDX-License-Identifier: Apache-2.0
// Node-local copies of training files. A file is copied once for all processes of a node, checked, and kept for the next run. A
// copy that was broken off resumes where it stopped. Nothing is removed or overwritten that this did not write. Torch-free.
//
// Beside a copy `x.h5` stand `x.h5.welkin` (what it is a copy of), while it is made `x.h5.part` and `x.h5.part.hashes`, and
// `x.h5.lock`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "config/schema/run_config.h"

namespace welkin::data {

struct StageOptions {
  std::filesystem::path folder;
  std::function<void(const std::string&)> report{};  // progress, one line at a time; may be empty
  uint64_t block_bytes = uint64_t{16} << 20;         // checked and resumed by blocks of this size
  std::function<void()> before_block{};  // an exception from it ends the copy, which a later call resumes; may be empty
};

// The path of a good copy of `source` below options.folder, in a folder named after the source's. Waits where another process is
// copying it. DataError when there is no room, when the copy cannot be read back as it was written, or when something that is not
// ours stands in its place.
std::filesystem::path stage_file(const std::filesystem::path& source, const StageOptions& options);

// A configuration whose training and validation files are staged, where `data.stage` is given; else as it is. Folders of fields
// are staged file by file.
config::RunConfig staged(const config::RunConfig& config, const std::function<void(const std::string&)>& report,
                         const std::function<void()>& before_block = {});

}  // namespace welkin::data
