// SPDX-License-Identifier: Apache-2.0
// The wheel exports c10d::ProcessGroupGloo but ships no gloo headers. These declarations only make its header compile. None of
// these types is ever constructed, derived from or called here (their real layout differs).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace rendezvous {

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& /*keys*/, const std::chrono::milliseconds& /*timeout*/) {}
};

}  // namespace rendezvous

namespace transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace transport
}  // namespace gloo
