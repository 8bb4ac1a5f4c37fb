// SPDX-License-Identifier: Apache-2.0
// What a rank does, told by a thread of its own: the rank itself cannot answer while it waits in a collective or computes. With
// the first failure anywhere (kAlarmNotice) it posts the call under way or the last one, so that the sentence about the failure
// tells ranks that wait from ranks that have ended. It also sees calls that the back end does not end at their deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "parallel/comm/call_desk.h"

namespace welkin::parallel {

struct CallWatchOptions {
  int64_t rank = 0;
  int64_t world_size = 1;
  std::chrono::milliseconds interval{200};               // between two looks at the board
  std::chrono::milliseconds hang_after{0};               // of a call under way; 0: never
  std::function<void(const std::string&)> on_hang = {};  // called once, on the watch's thread
};

class CallWatch {
 public:
  // The board is the watch's own connection to the store; the recorder is the rank's.
  CallWatch(std::shared_ptr<NoticeBoard> board, std::shared_ptr<const FlightRecorder> recorder, CallWatchOptions options);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

 private:
  void watch();
  bool look();  // false: there is nothing more to see
  void report_hang(const CallEntry& call);
  bool sleep(std::chrono::milliseconds time);  // false: the owner ends

  std::shared_ptr<NoticeBoard> board_;
  std::shared_ptr<const FlightRecorder> recorder_;
  CallWatchOptions options_;
  bool alarm_ = false;
  bool reported_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace welkin::parallel
