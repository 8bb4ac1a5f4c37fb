// SPDX-License-Identifier: Apache-2.0
// A watchdog thread per rank. It answers for the rank, which cannot answer while it waits in a collective or computes. After
// the first failure anywhere (kAlarmKey) it posts the call in progress or the last one. The error text can then tell ranks
// that wait from ranks that have ended. The watchdog also reports calls that run past their deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "parallel/comm/collective_monitor.h"

namespace welkin::parallel {

struct WatchdogOptions {
  int64_t rank = 0;
  int64_t world_size = 1;
  std::chrono::milliseconds interval{200};               // between two looks at the store
  std::chrono::milliseconds hang_after{0};               // of a call under way; 0: never
  std::chrono::milliseconds gpu_hang_after{0};           // of one on a GPU, which no back end ends; 0: as hang_after
  std::function<void(const std::string&)> on_hang = {};  // called once, on the watch's thread
};

class Watchdog {
 public:
  // The store is the watch's own connection to the store; the recorder is the rank's.
  Watchdog(std::shared_ptr<KeyValueStore> kv_store, std::shared_ptr<const FlightRecorder> recorder, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();
  bool look();  // false: there is nothing more to see
  void report_hang(const CallEntry& call);
  bool sleep(std::chrono::milliseconds time);  // false: the owner ends

  std::shared_ptr<KeyValueStore> kv_store_;
  std::shared_ptr<const FlightRecorder> recorder_;
  WatchdogOptions options_;
  bool alarm_ = false;
  bool reported_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace welkin::parallel
