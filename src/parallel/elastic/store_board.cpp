// SPDX-License-Identifier: Apache-2.0
#include "parallel/elastic/store_board.h"

#include <utility>

#include "core/file_descriptor.h"
#include "parallel/store/job_key.h"
#include "parallel/store/store_server.h"

namespace welkin::parallel {
namespace {

constexpr auto kBoardPatience = std::chrono::seconds(60);

class ServedBoard final : public launch::JobBoard {
 public:
  explicit ServedBoard(const launch::BoardPlace& place)
      : server_(FileDescriptor(place.listener), job_key(place.secret), StoreLimits::of_job(2 * place.num_ranks)),
        board_(place, kBoardPatience) {}

  void set(const std::string& key, const std::string& text) override { board_.set(key, text); }
  std::optional<std::string> read(const std::string& key) override { return board_.read(key); }
  int64_t strangers() const override { return server_.strangers(); }

 private:
  StoreServer server_;
  StoreBoard board_;
};

}  // namespace

StoreBoard::StoreBoard(const launch::BoardPlace& place, std::chrono::milliseconds timeout)
    : client_(place.host, static_cast<uint16_t>(place.port), job_key(place.secret), timeout) {}

void StoreBoard::set(const std::string& key, const std::string& text) {
  client_.call({.kind = StoreCall::Set, .texts = {key, text}});
}

std::optional<std::string> StoreBoard::read(const std::string& key) {
  if (client_.call({.kind = StoreCall::Check, .texts = {key}}).number != 1) return {};
  StoreMessage reply = client_.call({.kind = StoreCall::Get, .texts = {key}});  // no key is ever deleted
  if (reply.kind != StoreCall::Done || reply.texts.empty()) return {};
  return std::move(reply.texts.front());
}

std::unique_ptr<launch::JobBoard> make_store_board(const launch::BoardPlace& place) {
  if (place.listener >= 0) return std::make_unique<ServedBoard>(place);
  return std::make_unique<StoreBoard>(place, kBoardPatience);
}

}  // namespace welkin::parallel
