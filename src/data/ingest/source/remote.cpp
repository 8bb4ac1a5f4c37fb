// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/source/remote.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/text.h"
#include "data/ingest/source/remote_protocol.h"

namespace welkin::data::ingest {
namespace {

constexpr int kPipeBytes = 1 << 20;  // a plane is megabytes; the default is 64 KiB
constexpr int64_t kMostVersionBytes = 4096;

void set_remote_error(std::string_view text, char* error, int64_t capacity) {
  if (error == nullptr || capacity <= 0) return;
  const size_t length = std::min(text.size(), static_cast<size_t>(capacity) - 1);
  std::memcpy(error, text.data(), length);
  error[length] = '\0';
}

// False after so many seconds of silence.
bool wait_for_answer(int output, int64_t seconds) {
  for (;;) {
    pollfd news{.fd = output, .events = POLLIN, .revents = 0};
    const int ready = poll(&news, 1, static_cast<int>(std::min<int64_t>(seconds, 2'000'000) * 1000));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

// A file that is open in a child.
struct RemoteSource {
  RemoteComponent* home = nullptr;
  std::unique_ptr<ChildProcess> child;
  int64_t patience_s = 0;
  bool failed = false;

  // Sends, waits, and takes an answer that fills `results` exactly.
  int call(const RemoteRequest& request, std::string_view path, std::span<std::byte> results, char* error, int64_t capacity) {
    const auto lost = [&](const std::string& why) {
      failed = true;
      child.reset();
      set_remote_error(why, error, capacity);
      return 1;
    };
    if (!child) return lost("its reader has ended before");
    const bool sent = send_all(child->input(), std::as_bytes(std::span(&request, 1))) &&
                      send_all(child->input(), std::as_bytes(std::span(path)));
    if (sent && !wait_for_answer(child->output(), patience_s))
      return lost(cat("its reader does not answer: seconds=", patience_s));
    RemoteReply answer;
    if (!receive_all(child->output(), std::as_writable_bytes(std::span(&answer, 1)))) return lost(ending());
    failed = failed || answer.code != 0;
    answer.error[sizeof(answer.error) - 1] = '\0';
    if (answer.code != 0) set_remote_error(answer.error, error, capacity);
    if (answer.code != 0) return answer.code;
    if (answer.bytes != static_cast<int64_t>(results.size())) return lost("its reader answers something else");
    return receive_all(child->output(), results) ? 0 : lost(ending());
  }

 private:
  std::string ending() const {
    const std::string end = child->wait();
    return cat("the process that reads it ", end.empty() ? "was ended" : end);
  }
};

RemoteSource& remote(welkin_ingest_source* source) { return *reinterpret_cast<RemoteSource*>(source); }

template <typename T>
std::span<std::byte> as_results(T* values, int64_t count) {
  return std::as_writable_bytes(std::span(values, static_cast<size_t>(std::max<int64_t>(count, 0))));
}

void close_remote(welkin_ingest_source* source) {
  const std::unique_ptr<RemoteSource> owned(&remote(source));
  if (!owned->failed) owned->home->take_back(std::move(owned->child));
}

int scan_remote(welkin_ingest_source* source, welkin_ingest_counts* out, char* error, int64_t capacity) {
  return remote(source).call({.call = RemoteCall::Scan}, "", as_results(out, 1), error, capacity);
}

int variables_remote(welkin_ingest_source* source, welkin_ingest_variable* out, int64_t count, char* error, int64_t capacity) {
  return remote(source).call({.call = RemoteCall::Variables, .first = count}, "", as_results(out, count), error, capacity);
}

int planes_remote(welkin_ingest_source* source, int64_t first, int64_t count, welkin_ingest_plane* out, char* error,
                  int64_t capacity) {
  return remote(source).call({.call = RemoteCall::Planes, .first = first, .second = count}, "", as_results(out, count), error,
                             capacity);
}

int grid_remote(welkin_ingest_source* source, int64_t index, welkin_ingest_grid* out, char* error, int64_t capacity) {
  return remote(source).call({.call = RemoteCall::Grid, .first = index}, "", as_results(out, 1), error, capacity);
}

int coordinates_remote(welkin_ingest_source* source, int64_t index, double* latitude, int64_t height, double* longitude,
                       int64_t width, char* error, int64_t capacity) {
  std::vector<double> values(static_cast<size_t>(height + width));
  const int code = remote(source).call({.call = RemoteCall::Coordinates, .first = index, .second = height, .third = width}, "",
                                       as_results(values.data(), height + width), error, capacity);
  if (code != 0) return code;
  std::copy_n(values.begin(), height, latitude);
  std::copy_n(values.begin() + height, width, longitude);
  return 0;
}

int read_plane_remote(welkin_ingest_source* source, int64_t address, float* values, int64_t count, char* error,
                      int64_t capacity) {
  return remote(source).call({.call = RemoteCall::ReadPlane, .first = address, .second = count}, "", as_results(values, count),
                             error, capacity);
}

}  // namespace

std::unique_ptr<RemoteComponent> RemoteComponent::start(const std::filesystem::path& helper,
                                                        const std::filesystem::path& library) {
  if (access(helper.c_str(), X_OK) != 0) return nullptr;
  std::unique_ptr<RemoteComponent> component(new RemoteComponent(helper, library));
  auto first = component->start_child();
  if (!first) return nullptr;
  component->take_back(std::move(first));
  return component;
}

std::unique_ptr<ChildProcess> RemoteComponent::start_child() {
  const std::array<std::string, 2> arguments{"ingest", library_.string()};
  auto child = std::make_unique<ChildProcess>(helper_, arguments);
  if (!child->runs()) return nullptr;
  fcntl(child->output(), F_SETPIPE_SZ, kPipeBytes);
  RemoteReply hello;
  if (!receive_all(child->output(), std::as_writable_bytes(std::span(&hello, 1)))) return nullptr;
  if (hello.bytes < 0 || hello.bytes > kMostVersionBytes) return nullptr;
  std::string versions(static_cast<size_t>(hello.bytes), ' ');
  if (!receive_all(child->output(), std::as_writable_bytes(std::span(versions)))) return nullptr;
  if (versions_.empty()) versions_ = versions;
  return child;
}

int RemoteComponent::open(const char* path, int format, welkin_ingest_source** out, char* error, int64_t capacity) {
  auto source = std::make_unique<RemoteSource>();
  source->home = this;
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      source->child = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!source->child) source->child = start_child();
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(path, ignored);
  source->patience_s = 2 * remote_patience_s(ignored ? 0 : bytes);  // the child limits its computing itself
  const std::string_view text(path);
  const RemoteRequest request{.call = RemoteCall::Open, .format = format, .second = static_cast<int64_t>(text.size())};
  const int code = source->call(request, text, {}, error, capacity);
  if (code == 0) *out = reinterpret_cast<welkin_ingest_source*>(source.release());
  return code;
}

void RemoteComponent::take_back(std::unique_ptr<ChildProcess> child) {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(child));
}

const welkin_ingest_api& RemoteComponent::api() {
  static constexpr welkin_ingest_api kApi{.abi = WELKIN_INGEST_ABI,
                                          .versions = "",
                                          .open = nullptr,
                                          .close = close_remote,
                                          .scan = scan_remote,
                                          .variables = variables_remote,
                                          .planes = planes_remote,
                                          .grid = grid_remote,
                                          .coordinates = coordinates_remote,
                                          .read_plane = read_plane_remote};
  return kApi;
}

}  // namespace welkin::data::ingest
