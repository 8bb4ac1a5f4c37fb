// SPDX-License-Identifier: Apache-2.0
// A configuration's process settings (train/device/process_settings.h) hold during a call. Calls of several Python threads
// therefore take turns. A run that trains owns the process while it lasts, and other calls are refused meanwhile.
#pragma once

#include <atomic>
#include <mutex>

#include "core/error.h"

namespace welkin::apps::python {

class ProcessTurn {
 public:
  // ConfigError while a run trains.
  ProcessTurn() {
    if (is_training().load()) {
      throw ConfigError("python", "a run trains in this process, whose settings of torch hold for all of it",
                        "Wait for its end, or use the model in another process");
    }
    lock_ = std::unique_lock(mutex());
  }

 private:
  friend class TrainingTurn;
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::atomic<bool>& is_training() {
    static std::atomic<bool> flag{false};
    return flag;
  }

  std::unique_lock<std::mutex> lock_;
};

class TrainingTurn {
 public:
  // Waits for calls in progress. ConfigError while another run trains.
  TrainingTurn() {
    if (ProcessTurn::is_training().exchange(true)) {
      throw ConfigError("python", "another run trains in this process", "Wait for its end, or start it as welkin train");
    }
    lock_ = std::unique_lock(ProcessTurn::mutex());
  }
  ~TrainingTurn() {
    lock_.unlock();
    ProcessTurn::is_training() = false;
  }
  TrainingTurn(const TrainingTurn&) = delete;
  TrainingTurn& operator=(const TrainingTurn&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace welkin::apps::python
