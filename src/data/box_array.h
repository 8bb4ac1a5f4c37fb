// SPDX-License-Identifier: Apache-2.0
// One array of C channels over a box of cells, wherever it lies: mapped from an HDF5 or npy file, in memory, or behind HDF5's own
// reading (chunked, compressed, other number types). Knows cells and channels, no samples.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/orientation.h"

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
  std::array<int64_t, 4> to_stride{};  // channel, then output axes; the last is 1
};

// Thread-safe after construction. read() throws DataError.
class BoxArray {
 public:
  virtual ~BoxArray() = default;
  const BoxShape& shape() const { return shape_; }
  virtual void read(const BoxPiece& piece) const = 0;

 protected:
  explicit BoxArray(const BoxShape& shape) : shape_(shape) {}

 private:
  BoxShape shape_;
};

using BoxArrayPtr = std::shared_ptr<const BoxArray>;

// A data set (C, D, H, W) of an HDF5 file, any number type; mapped where it is contiguous little-endian float32.
BoxArrayPtr open_hdf5_box(const std::filesystem::path& path, const std::string& dataset);
// An array (D, H, W, C) of little-endian float32, C or Fortran order, mapped.
BoxArrayPtr open_npy_box(const std::filesystem::path& path);
// A copy in memory. DataError when the machine has not that much.
BoxArrayPtr load_box(const BoxArray& box);
// Independent standard normals, a function of (seed, channel, cell). DataError when the machine has not that much memory.
BoxArrayPtr make_normal_box(const BoxShape& shape, uint64_t seed);
// From values (C, D, H, W).
BoxArrayPtr make_box(const BoxShape& shape, std::vector<float> values);

}  // namespace welkin::data
