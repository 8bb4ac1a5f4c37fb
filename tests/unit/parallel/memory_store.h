// SPDX-License-Identifier: Apache-2.0
// A key-value store in memory, for ranks that are threads of a test.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "parallel/comm/collective_monitor.h"

namespace welkin::parallel {

class MemoryStore : public KeyValueStore {
 public:
  void set(const std::string& key, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    texts_[key] = text;
  }
  void set_if_absent(const std::string& key, const std::string& text) override {
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
