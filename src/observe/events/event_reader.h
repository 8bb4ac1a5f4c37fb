// SPDX-License-Identifier: Apache-2.0
// The scalars and pictures of TensorBoard's event files, whoever wrote them: old-style values (torch.utils.tensorboard, ours) and
// tensors of one float (TensorFlow 2). Every byte counts as hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::observe {

struct ScalarPoint {
  int64_t step = 0;
  double wall_time = 0;  // seconds since 1970
  double value = 0;
};

// A picture as its file: the bytes of a PNG, which nobody has looked into.
struct EventPicture {
  int64_t step = 0;
  double wall_time = 0;
  std::string png{};
};

struct EventScalars {
  std::map<std::string, std::vector<ScalarPoint>> by_tag;       // in the order of the file
  std::map<std::string, std::vector<EventPicture>> pictures{};  // by tag; of many a part, evenly spread, with the last one
  double first_wall_time = 0;                                   // of the first event with a time; 0: there is none
  bool is_cut = false;  // the last record is not whole: the run is going on, or was killed
};

// Appends one file to `scalars`, as TensorBoard would: what a restart voids (a session log) is dropped. A last record that is cut
// short is left out; a wrong checksum or a record that is no event is a DataError with its place, after which `scalars` holds
// what came before.
void read_events(std::span<const std::byte> file, std::string_view source, EventScalars& scalars);

}  // namespace welkin::observe
