// SPDX-License-Identifier: Apache-2.0
// Waits for what other threads do: for as long as a busy machine needs, and no longer.
#pragma once

#include <chrono>
#include <thread>

namespace welkin::tests {

// True once the condition holds; false if it does not within ten seconds.
template <typename Condition>
bool eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace welkin::tests
