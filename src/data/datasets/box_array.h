// SPDX-License-Identifier: Apache-2.0
// One array of C channels over a box of cells, wherever it lies: mapped from a file, in memory, or behind a reader that decodes
// (chunked, compressed, other number types). Knows cells and channels, no samples.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/sample/orientation.h"
#include "data/storage/channel_op.h"
#include "data/storage/stored_array.h"

namespace welkin::data {

struct BoxShape {
  int64_t channels = 0;
  std::array<int64_t, 3> extent{};  // cells along the box's axes 0, 1, 2

  bool operator==(const BoxShape&) const = default;
};

// A piece of the box, turned: output axis a runs along box axis turn.axis[a], backwards where turn.flip[a].
struct BoxPiece {
  std::array<int64_t, 3> first{};   // cell of the box that the first element of the output piece comes from
  std::array<int64_t, 3> extent{};  // of the output piece, along output axes
  Orientation turn{};
  const int64_t* channels = nullptr;  // for each output channel, the box channel that it is read from
  int64_t num_channels = 0;
  float* to = nullptr;
  const ChannelOp* ops = nullptr;      // one per output channel; null: values stay as they are
  std::array<int64_t, 4> to_stride{};  // channel, then output axes; the last is 1
};

// Thread-safe after construction. read() throws DataError.
class BoxArray {
 public:
  virtual ~BoxArray() = default;
  const BoxShape& shape() const { return shape_; }
  virtual void read(const BoxPiece& piece) const = 0;
  virtual uint64_t bytes_requested() const { return 0; }     // asked of its file by read() so far
  virtual std::filesystem::path path() const { return {}; }  // of its file; empty where it lies in memory

 protected:
  explicit BoxArray(const BoxShape& shape) : shape_(shape) {}

 private:
  BoxShape shape_;
};

using BoxArrayPtr = std::shared_ptr<const BoxArray>;

enum class ChannelAxis { First, Last };

// The array of that name in a file of any format, (C, D, H, W) or (D, H, W, C), any number type; mapped where it is
// little-endian float32 in one piece. Names of the file's axes tell the axis of the channels. Without names it is `expected`,
// or the other end if only that has exactly `channels` (0: not known).
BoxArrayPtr open_box(const ArrayFile& file, const std::string& dataset, ChannelAxis expected = ChannelAxis::First,
                     int64_t channels = 0);
// A copy in memory. DataError when memory does not suffice.
BoxArrayPtr load_box(const BoxArray& box);
// Independent standard normals, a function of (seed, channel, cell). DataError when memory does not suffice.
BoxArrayPtr make_normal_box(const BoxShape& shape, uint64_t seed);
// A box from values (C, D, H, W).
BoxArrayPtr make_box(const BoxShape& shape, std::vector<float> values);

}  // namespace welkin::data
