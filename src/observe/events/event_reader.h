// SPDX-License-Identifier: Apache-2.0
// Scalars and pictures of TensorBoard's event files from any writer: old-style values (torch.utils.tensorboard, ours) and
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

// A picture as its file: the unchecked bytes of a PNG.
struct EventPicture {
  int64_t step = 0;
  double wall_time = 0;
  std::string png{};
};

struct EventScalars {
  std::map<std::string, std::vector<ScalarPoint>> by_tag;       // in the order of the file
  std::map<std::string, std::vector<EventPicture>> pictures{};  // by tag; of many an evenly spread part, including the last
  double first_wall_time = 0;                                   // of the first event with a time; 0: there is none
  bool is_cut = false;  // the last record is not whole: the run is going on, or was killed
};

// Appends one file to `scalars`, as TensorBoard would: values that a restart (a session log) makes void are dropped. An
// incomplete last record is left out. A wrong checksum or a record that is not an event is a DataError with its place; then
// `scalars` holds all values before it.
void read_events(std::span<const std::byte> file, std::string_view source, EventScalars& scalars);

}  // namespace welkin::observe
