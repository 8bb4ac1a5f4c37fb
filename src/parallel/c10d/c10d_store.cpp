// SPDX-License-Identifier: Apache-2.0
#include "parallel/c10d/c10d_store.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "launch/job_secret.h"
#include "parallel/store/store_client.h"

namespace welkin::parallel {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;
using Bytes = std::vector<uint8_t>;

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }
Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

struct StoreAddress {
  std::string host;
  uint16_t port = 0;
  JobKey key{};
};

// c10d's interface over one connection to the store. A clone has a connection of its own, so that it can wait while this one
// asks.
class SealedStore final : public c10d::Store {
 public:
  SealedStore(StoreAddress address, std::chrono::milliseconds timeout)
      : Store(timeout), address_(std::move(address)), client_(address_.host, address_.port, address_.key, timeout) {}

  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<SealedStore>(address_, timeout_); }

  void set(const std::string& key, const Bytes& value) override {
    call({.kind = StoreCall::Set, .texts = {key, text_of(value)}});
  }
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& value) override {
    return bytes_of(text_in(call({.kind = StoreCall::CompareSet, .texts = {key, text_of(expected), text_of(value)}})));
  }
  Bytes get(const std::string& key) override {
    return bytes_of(text_in(call({.kind = StoreCall::Get, .number = timeout_.count(), .texts = {key}})));
  }
  int64_t add(const std::string& key, int64_t number) override {
    return call({.kind = StoreCall::Add, .number = number, .texts = {key}}).number;
  }
  bool deleteKey(const std::string& key) override { return call({.kind = StoreCall::Delete, .texts = {key}}).number > 0; }
  bool check(const std::vector<std::string>& keys) override {
    return call({.kind = StoreCall::Check, .texts = keys}).number == 1;
  }
  int64_t getNumKeys() override { return call({.kind = StoreCall::Count}).number; }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    call({.kind = StoreCall::Wait, .number = timeout.count(), .texts = keys});
  }

 private:
  StoreMessage call(const StoreMessage& request) {
    const std::lock_guard lock(mutex_);
    StoreMessage reply = client_.call(request);
    if (reply.kind == StoreCall::Timeout) {
      C10_THROW_ERROR(DistStoreError, cat("wait timeout after ", request.number, "ms, keys: ", join(request.texts, ", ")));
    }
    return reply;
  }
  static std::string text_in(const StoreMessage& reply) { return reply.texts.empty() ? std::string() : reply.texts.front(); }

  StoreAddress address_;
  std::mutex mutex_;
  StoreClient client_;
};

// Serves on rank 0; everybody learns where.
StoreAddress serve(const ConnectOptions& options, OpenStore& opened) {
  StoreAddress address{.host = options.host, .port = options.port, .key = opened.key};
  if (options.store_is_served) {
    c10d::TCPStoreOptions tcp;
    tcp.port = options.port;
    tcp.waitWorkers = false;
    tcp.timeout = options.deadline;
    const auto agent = c10::make_intrusive<c10d::TCPStore>(options.host, tcp);
    const std::string place = cat("welkin", options.attempt, "/store");
    if (options.rank == 0) {
      const ListeningSocket own = listen_on(options.own_address);
      opened.server = std::make_unique<StoreServer>(FileDescriptor(own.fd), opened.key, StoreLimits::of_job(options.world_size));
      static_cast<c10d::Store&>(*agent).set(place, cat(options.own_address, " ", own.port));
    }
    const std::string told = agent->get_to_str(place);
    const size_t space = told.find(' ');
    address.host = told.substr(0, space);
    const char* port = told.data() + std::min(space + 1, told.size());
    if (space != std::string::npos && std::from_chars(port, told.data() + told.size(), address.port).ec == std::errc())
      return address;
    throw CommError("parallel", cat("the launcher's store tells no address of rank 0: text=", told.substr(0, 64)),
                    "Start all ranks with the same release of welkin");
  }
  if (options.rank == 0 && !options.store_is_launchers) {
    // The descriptor is the launcher's, or the caller's: ours is a copy.
    const int listener = options.listen_fd >= 0 ? options.listen_fd : listen_on(options.host, options.port).fd;
    opened.server = std::make_unique<StoreServer>(FileDescriptor(listener), opened.key, StoreLimits::of_job(options.world_size));
  }
  return address;
}

}  // namespace

OpenStore open_store(const ConnectOptions& options) {
  OpenStore opened{.server = nullptr, .store = {}, .key = job_key(options.secret), .job_nonce = {}};
  if (!options.file.empty()) {
    opened.store = c10::make_intrusive<c10d::FileStore>(options.file, static_cast<int>(options.world_size));
  } else {
    const StoreAddress address = serve(options, opened);
    opened.store = c10::make_intrusive<c10d::PrefixStore>(cat("welkin", options.attempt),
                                                          c10::make_intrusive<SealedStore>(address, options.deadline));
  }
  constexpr const char* kNonce = "job nonce";
  if (options.rank == 0) static_cast<c10d::Store&>(*opened.store).set(kNonce, launch::random_token());
  opened.job_nonce = opened.store->get_to_str(kNonce);
  return opened;
}

}  // namespace welkin::parallel
