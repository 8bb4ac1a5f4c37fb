// SPDX-License-Identifier: Apache-2.0
// What the steps of a measurement have sent, what that takes alone, and how much of it the computation hides.
#pragma once

#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parallel/comm/flight_recorder.h"
#include "parallel/comm/group.h"
#include "parallel/shard/gradient_exchange.h"

namespace welkin::bench {

struct Traffic {
  std::vector<parallel::CallTotal> calls;  // of this rank, by group and collective
  int64_t steps = 0;                       // in which they were made
  double exchange_alone_s = 0;             // of a step: the gradients' messages one after the other, with nothing beside them
  // Of sharded data parallelism, whose calls last as long as what they run beside: seconds per byte with nothing beside them.
  std::string shard_group = {};
  double gather_s_per_byte = 0, scatter_s_per_byte = 0;
};

// The calls since `before`, which was taken from the same recorder.
std::vector<parallel::CallTotal> calls_since(const std::vector<parallel::CallTotal>& before,
                                             const std::vector<parallel::CallTotal>& now);

// Seconds of the messages of one exchange, in the buckets in which it sends them; the median over repetitions of the slowest
// rank. `travels`: their type, and the device on which they lie. Every rank of the group calls it.
double seconds_of_exchange_alone(const parallel::GradientExchange& exchange, const parallel::Group& group,
                                 const at::TensorOptions& travels);

// Fills in shard_group and what follows it; of a message as large as the largest bucket. Every rank of the group calls it.
void time_sharded_calls(Traffic& traffic, const parallel::GradientExchange& exchange, const parallel::Group& group,
                        const at::TensorOptions& gradients);

// What a step waits for, and what runs beside its computation. `step_s`, `no_comm_s`: a step with communication and without.
struct Communication {
  double alone_s = 0;    // the exchange of gradients alone, and the calls that the step itself makes and waits for
  double exposed_s = 0;  // what the step is longer for
  bool is_told = true;   // false: the step without communication was no faster, as on cores that the ranks share
  double hidden_fraction() const { return alone_s > 0 ? 1 - exposed_s / alone_s : 0; }
};
Communication communication_of(const Traffic& traffic, double step_s, double no_comm_s);

std::string communication_text(const Traffic& traffic, const Communication& communication);
// "communication": times of a step, and calls, bytes and bytes per second by group and collective.
void add_communication_json(nlohmann::ordered_json& json, const Traffic& traffic, const Communication& communication);

}  // namespace welkin::bench
