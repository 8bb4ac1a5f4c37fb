// SPDX-License-Identifier: Apache-2.0
// Time of a collective by its ring formula: a number of messages one after the other, each with a latency, and the bytes over
// every link. Sweeps are fitted with it, and scaling tables extended. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace welkin::plan {

enum class CollectiveKind { AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, SendReceive };
inline constexpr CollectiveKind kCollectiveKinds[] = {CollectiveKind::AllReduce,     CollectiveKind::AllGather,
                                                      CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
                                                      CollectiveKind::Broadcast,     CollectiveKind::SendReceive};
const char* collective_name(CollectiveKind kind);                         // "all_reduce"
std::optional<CollectiveKind> collective_named(const std::string& name);  // nothing for an unknown name

// Messages, one after the other, of one collective over `ranks` members.
double ring_messages(CollectiveKind kind, int64_t ranks);
// Bytes over a link per byte of the whole tensor that is reduced, gathered, scattered, exchanged or sent.
double bus_factor(CollectiveKind kind, int64_t ranks);

struct LinkFit {
  std::string axis;  // "dp"
  CollectiveKind kind = CollectiveKind::AllReduce;
  int64_t ranks = 0;            // number of ranks of the measurement
  double latency_s = 0;         // per message
  double bytes_per_second = 0;  // of one link

  double seconds(int64_t bytes) const { return seconds(bytes, ranks); }
  double seconds(int64_t bytes, int64_t over_ranks) const;  // over the same links with another number of ranks
};

struct TimedCollective {
  std::string axis;
  CollectiveKind kind = CollectiveKind::AllReduce;
  int64_t ranks = 0;
  int64_t bytes = 0;   // of the whole tensor
  double seconds = 0;  // median over repetitions of the slowest rank
  // "Bus bandwidth" of NCCL's tests: bytes over a link per second.
  double bus_bytes_per_second() const { return static_cast<double>(bytes) * bus_factor(kind, ranks) / seconds; }
};

// Fits latency and bandwidth with the least relative errors, neither negative. One fit per axis and collective, in the order of
// `times`.
std::vector<LinkFit> fit_links(const std::vector<TimedCollective>& times);

}  // namespace welkin::plan
