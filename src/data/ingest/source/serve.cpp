// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/ingest/source/component.h"
#include "data/ingest/source/remote.h"
#include "data/ingest/source/remote_protocol.h"

namespace welkin::data::ingest {

bool receive_all(int from, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = read(from, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

bool send_all(int to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(to, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

namespace {

constexpr int64_t kLongestPath = 1 << 16;

class ComponentServer {
 public:
  ComponentServer(const welkin_ingest_api& api, int input, int output, const std::function<void(int64_t)>& allow_seconds)
      : api_(api), input_(input), output_(output), allow_seconds_(allow_seconds) {}
  ~ComponentServer() { close(); }
  ComponentServer(const ComponentServer&) = delete;
  ComponentServer& operator=(const ComponentServer&) = delete;

  int run() {
    const std::string versions = api_.versions;
    results_.assign(reinterpret_cast<const std::byte*>(versions.data()),
                    reinterpret_cast<const std::byte*>(versions.data() + versions.size()));
    if (!reply({})) return 1;
    RemoteRequest request;
    while (receive_all(input_, std::as_writable_bytes(std::span(&request, 1)))) {
      RemoteReply answer;
      results_.clear();
      if (request.call == RemoteCall::Open && !receive_path(request.second)) return 1;
      allow_seconds_(patience_s());
      answer.code = call(request, answer.error, static_cast<int64_t>(sizeof(answer.error)));
      if (answer.code != 0) results_.clear();
      if (!reply(answer)) return 1;
    }
    return 0;
  }

 private:
  bool reply(RemoteReply answer) {
    answer.bytes = static_cast<int64_t>(results_.size());
    return send_all(output_, std::as_bytes(std::span(&answer, 1))) && send_all(output_, results_);
  }

  bool receive_path(int64_t bytes) {
    if (bytes <= 0 || bytes > kLongestPath) return false;
    path_.resize(static_cast<size_t>(bytes));
    return receive_all(input_, std::as_writable_bytes(std::span(path_)));
  }

  int64_t patience_s() const {
    std::error_code ignored;
    const auto bytes = std::filesystem::file_size(path_, ignored);
    return remote_patience_s(ignored ? 0 : bytes);
  }

  template <typename T>
  T* results(int64_t count) {
    results_.resize(static_cast<size_t>(std::max<int64_t>(count, 0)) * sizeof(T));
    return reinterpret_cast<T*>(results_.data());
  }

  int call(const RemoteRequest& request, char* error, int64_t capacity) {
    const int64_t first = request.first, second = request.second;
    switch (request.call) {
      case RemoteCall::Open:
        close();
        return api_.open(path_.c_str(), request.format, &source_, error, capacity);
      case RemoteCall::Scan:
        return api_.scan(source_, results<welkin_ingest_counts>(1), error, capacity);
      case RemoteCall::Variables:
        return api_.variables(source_, results<welkin_ingest_variable>(first), first, error, capacity);
      case RemoteCall::Planes:
        return api_.planes(source_, first, second, results<welkin_ingest_plane>(second), error, capacity);
      case RemoteCall::Grid:
        return api_.grid(source_, first, results<welkin_ingest_grid>(1), error, capacity);
      case RemoteCall::Coordinates: {
        auto* latitude = results<double>(second + request.third);
        return api_.coordinates(source_, first, latitude, second, latitude + second, request.third, error, capacity);
      }
      case RemoteCall::ReadPlane:
        return api_.read_plane(source_, first, results<float>(second), second, error, capacity);
    }
    return 1;
  }

  void close() {
    if (source_ != nullptr) api_.close(source_);
    source_ = nullptr;
  }

  const welkin_ingest_api& api_;
  int input_, output_;
  const std::function<void(int64_t)>& allow_seconds_;
  welkin_ingest_source* source_ = nullptr;
  std::string path_;
  std::vector<std::byte> results_;
};

}  // namespace

int serve_component(const Component& component, int input, int output, const std::function<void(int64_t)>& allow_seconds) {
  return ComponentServer(component.api(), input, output, allow_seconds).run();
}

}  // namespace welkin::data::ingest
