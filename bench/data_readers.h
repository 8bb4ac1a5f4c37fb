// SPDX-License-Identifier: Apache-2.0
// What bench_data measures: our pipeline over a data set, and the bare copy of the same rows from a mapping, which no reader of
// contiguous files can beat.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace welkin::bench {

// Work in slices: run(seconds) does samples until the time is over.
struct Slice {
  int64_t samples = 0;
  double seconds = 0;
  uint64_t delivered_bytes = 0, requested_bytes = 0;
  int64_t batches = 0;
  uint64_t page_faults = 0;  // of the process in that time: fresh memory, also first looks at mapped files
};

class Reader {
 public:
  virtual ~Reader() = default;
  // Reads until the time is over, one batch at the least.
  virtual Slice run(double seconds) = 0;
};

struct ReaderOptions {
  int64_t crop = 64;
  int64_t workers = 0;  // reading threads of our pipeline
  int64_t batch = 4;
  bool turns = false;  // the 24 rotations
  bool cached = true;  // decoded chunks are kept, as in training; else every one is decoded anew, which is what is to scale
};

std::unique_ptr<Reader> open_box_reader(const std::filesystem::path& path,
                                        const ReaderOptions& options);  // .h5, or folder of npy
std::unique_ptr<Reader> open_pair_reader(const std::filesystem::path& folder, const ReaderOptions& options);
// 4 + 5 channels of random crops, row by row with memcpy from a mapping into one reused buffer; one thread.
std::unique_ptr<Reader> open_copy_loop(const std::filesystem::path& path, const ReaderOptions& options);

}  // namespace welkin::bench
