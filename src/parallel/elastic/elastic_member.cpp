// SPDX-License-Identifier: Apache-2.0
#include "parallel/elastic/elastic_member.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

launch::ProcessId id_of(const launch::RankInfo& place) {
  const auto id = launch::parse_process_id(place.elastic_id);
  if (id) return *id;
  throw ConfigError("elastic", cat("not the name of a process of a job: WELKIN_ELASTIC_ID=", place.elastic_id),
                    "welkin launch --elastic sets it: unset what is left over");
}

launch::BoardPlace board_of(const launch::RankInfo& place, const std::string& secret) {
  return {
      .host = place.master_address, .port = place.master_port, .listener = -1, .secret = secret, .num_ranks = place.world_size};
}

}  // namespace

ElasticMember::ElasticMember(const launch::RankInfo& place, const std::string& secret, std::chrono::milliseconds timeout)
    : id_(id_of(place)), board_place_(board_of(place, secret)), board_(std::make_unique<StoreBoard>(board_place_, timeout)) {}

template <typename Ask>
auto ElasticMember::ask(Ask ask) {
  try {
    return ask(*board_);
  } catch (const CommError&) {
    constexpr auto kAgain = std::chrono::seconds(5);
    board_ = std::make_unique<StoreBoard>(board_place_, kAgain);
    return ask(*board_);
  }
}

void ElasticMember::say_hello(const std::vector<int64_t>& sizes) {
  ask([&](StoreBoard& board) {
    board.set(launch::kSizesKey, join(sizes, " "));
    board.set(launch::hello_key(text_of(id_)), "here");
  });
}

std::optional<launch::Round> ElasticMember::await_round(const std::function<bool()>& is_stopped) {
  while (!is_stopped()) {
    const auto now = launch::parse_now(ask([](StoreBoard& board) { return board.read(launch::kNowKey); }).value_or(""));
    if (now && now->number > latest_) {
      latest_ = now->number;
      const auto text = ask([this](StoreBoard& board) { return board.read(launch::round_key(latest_)); });
      auto round = launch::parse_round(latest_, text.value_or(""));
      if (round && round->rank_of(id_)) return round;
    }
    if (ask([](StoreBoard& board) { return board.read(launch::kEndKey); })) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

void ElasticMember::leave(const launch::Round& round, const std::string& why) {
  ask([&](StoreBoard& board) { board.set(launch::left_key(round.number, text_of(id_)), why); });
}

void ElasticMember::say_begun() {
  ask([](StoreBoard& board) { board.set(launch::kBegunKey, "begun"); });
}

launch::RankInfo place_in(const launch::Round& round, const launch::RankInfo& started, const launch::ProcessId& id) {
  launch::RankInfo place = started;
  std::vector<int64_t> nodes;
  for (const launch::ProcessId& member : round.members) nodes.push_back(member.node);
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  place.rank = round.rank_of(id).value();
  place.world_size = static_cast<int64_t>(round.members.size());
  place.num_nodes = static_cast<int64_t>(nodes.size());
  place.node = std::ranges::lower_bound(nodes, id.node) - nodes.begin();
  place.attempt = round.number;
  return place;
}

}  // namespace welkin::parallel
