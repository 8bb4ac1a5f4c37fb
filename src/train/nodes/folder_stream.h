// SPDX-License-Identifier: Apache-2.0
// Sends the files of a checkpoint from one rank's disk to another's, in blocks. Received files are verified before publication.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/group.h"
#include "train/checkpoint/checkpoint_store.h"

namespace welkin::train {

// Memory through which a file passes on either side.
inline constexpr int64_t kStreamBlockBytes = int64_t{4} << 20;

struct NamedFile {
  std::string name;
  int64_t bytes = 0;
};

// True for the name of a visible file in the folder itself.
bool is_plain_name(const std::string& name);

// The list as a text for other ranks. Reading it gives nothing if a name is not plain, or a size negative.
std::string listing_of(const std::vector<NamedFile>& files);
std::optional<std::vector<NamedFile>> parse_listing(const std::string& text);

// Sends to the member `to`, which calls one of the functions below. No folder: there is no checkpoint this time. `files`: only
// files of these names; empty: all. On any thread, as long as no other one uses the group. CommError. DataError if a file
// cannot be read, after as many bytes as were announced.
void send_checkpoint(const parallel::Group& group, int64_t to, const std::optional<std::filesystem::path>& folder,
                     const std::vector<std::string>& files = {});

// Tells a receiver that waits for a checkpoint that it is still being written: else it would wait for its first message in vain
// for a deadline. Before send_checkpoint(), as often as needed.
void send_patience(const parallel::Group& group, int64_t to);

// Receives into store.path_of(its step), unless it is there already; false if none was sent. CheckpointError when it cannot be
// written or differs from what was sent: then nothing of it stays.
bool receive_checkpoint(const parallel::Group& group, int64_t from, CheckpointStore& store);

// The same for some files of a checkpoint and its index: they join the files in the folder of its step.
bool receive_files(const parallel::Group& group, int64_t from, const CheckpointStore& store);

}  // namespace welkin::train
