// SPDX-License-Identifier: Apache-2.0
// Serves the store at a listening socket from its own thread. A caller that does not show in time that it has the job's
// key is closed and counted, and learns nothing but a random number. Sizes are bounded before they are trusted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/file_descriptor.h"
#include "parallel/store/job_key.h"

namespace welkin::parallel {

struct StoreLimits {
  std::chrono::milliseconds greeting{10'000};  // for a caller to show that it has the key
  size_t strangers = 256;                      // most callers that have not shown it; the oldest is closed for a new one

  // Limits for all ranks of a job arriving at once, each with several connections, and strangers besides.
  static StoreLimits of_job(int64_t ranks) { return {.strangers = 256 + 4 * static_cast<size_t>(ranks)}; }
};

class StoreServer {
 public:
  // Throws CommError when the system refuses what it needs.
  StoreServer(FileDescriptor listener, const JobKey& key, StoreLimits limits = {});
  ~StoreServer();  // closes all connections
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Number of connections that sent something and were closed without the key. From any thread.
  int64_t strangers() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace welkin::parallel
