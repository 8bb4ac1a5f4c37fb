// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint from one rank's disk to another's, in blocks. What has arrived is verified before it is published.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/group.h"
#include "train/checkpoint/checkpoint_store.h"

namespace welkin::train {

// Memory that a file passes through on either side.
inline constexpr int64_t kStreamBlockBytes = int64_t{4} << 20;

struct NamedFile {
  std::string name;
  int64_t bytes = 0;
};

// Of a file in one folder, and of no file that is hidden there.
bool is_plain_name(const std::string& name);

// The list as it is told to others. Reading it gives nothing where a name is not plain, or a size negative.
std::string listing_of(const std::vector<NamedFile>& files);
std::optional<std::vector<NamedFile>> parse_listing(const std::string& text);

// To the member `to`, which calls one of those below. Nothing: that there is no checkpoint this time. `files`: of these names
// alone; empty: all. On any thread, as long as no other one uses the group. CommError; DataError where a file cannot be read,
// after as many bytes as were announced.
void send_checkpoint(const parallel::Group& group, int64_t to, const std::optional<std::filesystem::path>& folder,
                     const std::vector<std::string>& files = {});

// Into store.path_of(its step), unless it is there already; false where there was none. CheckpointError when it cannot be written
// or is not what was sent: then nothing of it stays.
bool receive_checkpoint(const parallel::Group& group, int64_t from, CheckpointStore& store);

// The same of some files of a checkpoint and its index: they join those in the folder of its step.
bool receive_files(const parallel::Group& group, int64_t from, const CheckpointStore& store);

}  // namespace welkin::train
