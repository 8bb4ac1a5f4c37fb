// SPDX-License-Identifier: Apache-2.0
#include "launch/doctor/link_findings.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/stopwatch.h"
#include "core/text.h"
#include "launch/doctor/link_message.h"
#include "launch/sockets.h"

namespace welkin::launch {
namespace {

using Json = nlohmann::json;

constexpr size_t kLargestMessage = size_t{1} << 20, kTestBytes = size_t{16} << 20;
constexpr int kRounds = 20;
constexpr double kSlowLinkBytes = 100e6, kFarClockSeconds = 1;  // bytes in a second

struct Peer {
  LinkMessages messages;
  int64_t rank = 0;
  Json hello;
  double latency_s = 0, bytes_s = 0, clock_s = 0;
};

double wall_clock_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string microseconds(double seconds) { return cat(static_cast<int64_t>(seconds * 1e6), " us"); }

// Answers rank 0 on every other rank. Messages of rank 0 are small but for the block.
void answer(LinkMessages& messages) {
  for (int i = 0; i < kRounds; ++i) {
    messages.receive(8);
    messages.send(cat(static_cast<int64_t>(wall_clock_s() * 1e6)));
  }
  messages.receive(kTestBytes);
  messages.send("got it");
}

// The fastest round has waited least, so its middle is nearest to the other rank's clock.
void measure(Peer& peer) {
  peer.latency_s = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    const double before_s = wall_clock_s();
    const Stopwatch watch;
    peer.messages.send("ping");
    const std::string there = peer.messages.receive(32);
    const double taken_s = watch.seconds();
    if (taken_s / 2 >= peer.latency_s) continue;
    peer.latency_s = taken_s / 2;
    peer.clock_s = std::strtod(there.c_str(), nullptr) / 1e6 - (before_s + taken_s / 2);
  }
  const std::string block(kTestBytes, 'w');
  const Stopwatch watch;
  peer.messages.send(block);
  peer.messages.receive(32);
  peer.bytes_s = static_cast<double>(kTestBytes) / watch.seconds();
}

std::optional<Json> hello_of(LinkMessages& messages, int64_t world) {
  try {
    const Json hello = Json::parse(messages.receive(kLargestMessage), nullptr, false);
    if (hello.is_object() && hello.value("doctor", 0) == 1 && hello.value("rank", int64_t{0}) > 0 &&
        hello.value("rank", world) < world)
      return hello;
  } catch (const CommError&) {
  } catch (const Json::exception&) {
  }
  return {};  // a stranger
}

// One connection for each of the others, if it comes within the time.
std::vector<Peer> gather(int listener, const LinkRequest& request) {
  std::vector<Peer> peers;
  const Stopwatch watch;
  const auto left_ms = [&] { return static_cast<int>(request.timeout.count()) - static_cast<int>(watch.seconds() * 1000); };
  while (static_cast<int64_t>(peers.size()) + 1 < request.place.world_size && left_ms() > 0) {
    pollfd wanted{.fd = listener, .events = POLLIN, .revents = 0};
    if (poll(&wanted, 1, left_ms()) != 1) continue;
    FileDescriptor socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) continue;
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    LinkMessages messages(std::move(socket), "a rank", std::chrono::milliseconds(std::clamp(left_ms(), 1000, 5000)));
    if (auto hello = hello_of(messages, request.place.world_size)) {
      const auto rank = hello->at("rank").get<int64_t>();
      const bool is_known = std::any_of(peers.begin(), peers.end(), [&](const Peer& peer) { return peer.rank == rank; });
      if (!is_known) peers.push_back({.messages = std::move(messages), .rank = rank, .hello = std::move(*hello)});
    }
  }
  std::sort(peers.begin(), peers.end(), [](const Peer& a, const Peer& b) { return a.rank < b.rank; });
  return peers;
}

Finding presence(const std::vector<Peer>& peers, int64_t world) {
  std::vector<int64_t> absent;
  for (int64_t rank = 1; rank < world; ++rank) {
    if (std::none_of(peers.begin(), peers.end(), [&](const Peer& peer) { return peer.rank == rank; })) absent.push_back(rank);
  }
  return judged("ranks",
                absent.empty() ? cat(world, " of ", world, " reached rank 0")
                               : cat("rank(s) ", join(absent, ", "), " did not reach rank 0"),
                !absent.empty(), Verdict::Bad,
                "Look at their output: MASTER_ADDR and MASTER_PORT must be the same on all, and no firewall between");
}

// Every rank tries those of lower rank, except rank 0, and reports those that it did not reach.
Finding pairs(std::vector<Peer>& peers) {
  Json addresses = Json::array();
  for (const Peer& peer : peers)
    addresses.push_back(
        {{"rank", peer.rank}, {"address", peer.hello.value("address", "")}, {"port", peer.hello.value("port", 0)}});
  std::vector<std::string> apart;
  for (Peer& peer : peers) peer.messages.send(addresses.dump());
  for (Peer& peer : peers) {
    const Json missed = Json::parse(peer.messages.receive(kLargestMessage));
    for (const Json& rank : missed) apart.push_back(cat(peer.rank, "-", rank.get<int64_t>()));
  }
  return judged("ports",
                apart.empty() ? "each rank reaches each on a port of the system's choice"
                              : cat("no connection between ", join(apart, ", ")),
                !apart.empty(), Verdict::Bad,
                "Open the ports above 32768 between the nodes, or choose another network with GLOO_SOCKET_IFNAME");
}

std::vector<int64_t> unreached(const std::string& addresses, int64_t own, std::chrono::milliseconds timeout) {
  std::vector<int64_t> missed;
  for (const Json& entry : Json::parse(addresses)) {
    const auto rank = entry.at("rank").get<int64_t>();
    if (rank >= own) continue;
    try {
      connect_to(entry.at("address").get<std::string>(), entry.at("port").get<int64_t>(), timeout);
    } catch (const CommError&) {
      missed.push_back(rank);
    }
  }
  return missed;
}

Findings link_findings(const std::vector<Peer>& peers, const LinkRequest& request) {
  const auto slowest =
      std::min_element(peers.begin(), peers.end(), [](const Peer& a, const Peer& b) { return a.bytes_s < b.bytes_s; });
  const auto farthest =
      std::max_element(peers.begin(), peers.end(), [](const Peer& a, const Peer& b) { return a.latency_s < b.latency_s; });
  const auto clock = std::max_element(peers.begin(), peers.end(),
                                      [](const Peer& a, const Peer& b) { return std::abs(a.clock_s) < std::abs(b.clock_s); });
  const auto host = [](const Peer& peer) { return peer.hello.value("host", "?"); };
  Findings findings;
  findings.push_back(judged("links",
                            cat("at least ", static_cast<int64_t>(slowest->bytes_s / 1e6), " MB/s (rank ", slowest->rank, " on ",
                                host(*slowest), "), at most ", microseconds(farthest->latency_s), " (rank ", farthest->rank, ")"),
                            slowest->bytes_s < kSlowLinkBytes, Verdict::Doubtful,
                            "An exchange of gradients waits for it: choose a faster interface with GLOO_SOCKET_IFNAME"));
  if (request.place.num_nodes > 1) {
    findings.push_back(judged("clocks", cat("at most ", microseconds(std::abs(clock->clock_s)), " apart (", host(*clock), ")"),
                              std::abs(clock->clock_s) > kFarClockSeconds, Verdict::Doubtful,
                              "Logs and time limits of the nodes do not agree: have the administrator look at NTP"));
  }
  return findings;
}

LinkReport lead(const LinkRequest& request) {
  FileDescriptor handed(static_cast<int>(request.place.listen_descriptor));
  if (!handed) handed = listen_at(request.place.master_address, request.place.master_port).socket;
  std::vector<Peer> peers = gather(handed.get(), request);
  LinkReport report;
  report.findings.push_back(presence(peers, request.place.world_size));
  if (peers.empty()) return report;
  for (Peer& peer : peers) measure(peer);
  report.findings.push_back(pairs(peers));
  for (const Finding& finding : link_findings(peers, request)) report.findings.push_back(finding);
  for (const Peer& peer : peers) {
    report.pages.push_back(peer.hello.value("page", ""));
    report.hosts.push_back(peer.hello.value("host", ""));
  }
  for (Peer& peer : peers) peer.messages.send("done");  // until here they keep their ports open
  return report;
}

void follow(const LinkRequest& request) {
  const RankInfo& place = request.place;
  const std::string own = reach(place.master_address, place.master_port, request.timeout);
  const Listener listener = listen_at(own, 0);
  LinkMessages messages(connect_to(place.master_address, place.master_port, request.timeout), "rank 0", 4 * request.timeout);
  const int on = 1;
  setsockopt(messages.socket(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const Json hello = {{"doctor", 1},    {"rank", place.rank},    {"host", request.host},
                      {"address", own}, {"port", listener.port}, {"page", request.page_json}};
  messages.send(hello.dump());
  answer(messages);
  const std::string addresses = messages.receive(kLargestMessage);
  messages.send(Json(unreached(addresses, place.rank, std::chrono::milliseconds(5000))).dump());
  messages.receive(32);
}

}  // namespace

LinkReport test_links(const LinkRequest& request) {
  if (request.place.world_size < 2) return {};
  if (request.place.rank == 0) return lead(request);
  follow(request);
  return {};
}

}  // namespace welkin::launch
