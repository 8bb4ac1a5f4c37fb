// SPDX-License-Identifier: Apache-2.0
// Reports reads that hang (for instance on a parallel file system) where no other thread could report them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "data/storage/read_watch.h"

namespace welkin::data {

using ReadWatches = std::span<const std::unique_ptr<ReadWatch>>;

// A sentence about the oldest read that has run for `seconds`, and on how many of `num_threads` threads there is such a read;
// empty where there is none.
std::string stalled_reads(ReadWatches watches, int64_t num_threads, double seconds);

// While it lives, its own thread polls `watches`, which outlive it. It reports reads that have run for `seconds`, and again
// whenever their age has doubled.
class StallWatch {
 public:
  using Report = std::function<void(const std::string&)>;
  StallWatch(ReadWatches watches, int64_t num_threads, double seconds, Report report);

 private:
  std::jthread thread_;
};

}  // namespace welkin::data
