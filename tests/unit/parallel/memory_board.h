// SPDX-License-Identifier: Apache-2.0
// A notice board in memory, for ranks that are threads of a test.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "parallel/comm/call_desk.h"

namespace welkin::parallel {

class MemoryBoard : public NoticeBoard {
 public:
  void post(const std::string& key, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    texts_[key] = text;
  }
  void post_first(const std::string& key, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    texts_.emplace(key, text);
  }
  std::optional<std::string> read(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    const auto found = texts_.find(key);
    return found == texts_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

}  // namespace welkin::parallel
