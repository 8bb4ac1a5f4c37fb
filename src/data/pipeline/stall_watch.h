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

// The oldest of the reads that have run for `seconds`, and in how many of `num_threads` threads there is one, as a sentence for
// people; empty where there is none.
std::string stalled_reads(ReadWatches watches, int64_t num_threads, double seconds);

// While it lives, a thread of its own looks after `watches`, which outlive it, and tells of reads that have run for `seconds`,
// again whenever the age has doubled.
class StallWatch {
 public:
  using Report = std::function<void(const std::string&)>;
  StallWatch(ReadWatches watches, int64_t num_threads, double seconds, Report report);

 private:
  std::jthread thread_;
};

}  // namespace welkin::data
