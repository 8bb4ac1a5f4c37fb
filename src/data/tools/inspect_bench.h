// SPDX-License-Identifier: Apache-2.0
// The speed of a file for training, and its cause: the rate of reads as training makes them, by one thread and by several, and
// how many values are decoded per value wanted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace welkin::data {

struct FileBenchOptions {
  int64_t crop = 64;     // edge of the part of a box that is read, cells
  double seconds = 0.5;  // of each measurement
  int num_threads = 0;   // of the second measurement; 0: the cores of this process
};

// Values decoded per value wanted, averaged over all places of a read of that shape: along each axis a read of r touches
// (r - 1) / c + 1 chunks of c on average, at most all. 1 for an array without chunks.
double read_amplification(const std::vector<int64_t>& shape, const std::vector<int64_t>& chunk, const std::vector<int64_t>& read);

// Lines of text for every array (time, channel, row, column) named fields, and every box of a file. DataError where
// the file has none.
std::string bench_file(const std::filesystem::path& path, const FileBenchOptions& options = {});

}  // namespace welkin::data
