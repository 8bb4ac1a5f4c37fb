// SPDX-License-Identifier: Apache-2.0
// Messages of the measured steps: their number and bytes, their time alone, and the fraction that the computation hides.
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
  int64_t steps = 0;                       // number of steps with these calls
  double exchange_alone_s = 0;             // per step: the gradients' messages one after the other, with nothing beside them
  // For sharded data parallelism, whose calls last as long as the computation beside them: seconds per byte of a call alone.
  std::string shard_group = {};
  double gather_s_per_byte = 0, scatter_s_per_byte = 0;
};

// The calls since `before`; both are from the same recorder.
std::vector<parallel::CallTotal> calls_since(const std::vector<parallel::CallTotal>& before,
                                             const std::vector<parallel::CallTotal>& now);

// Seconds of one exchange's messages, in its own buckets; the median over repetitions of the slowest
// rank. `travels`: type and device of the messages. Every rank of the group calls it.
double seconds_of_exchange_alone(const parallel::GradientExchange& exchange, const parallel::Group& group,
                                 const at::TensorOptions& travels);

// Fills in shard_group and the members behind it, with a message of the largest bucket's size. Every rank of the group calls.
void time_sharded_calls(Traffic& traffic, const parallel::GradientExchange& exchange, const parallel::Group& group,
                        const at::TensorOptions& gradients);

// Exposed and hidden communication of a step. `step_s`, `no_comm_s`: seconds of a step with and without communication.
struct Communication {
  double alone_s = 0;    // gradient exchange alone, and the step's own blocking calls
  double exposed_s = 0;  // time that it adds to the step
  bool is_told = true;   // false: the step without communication was no faster, as on cores that the ranks share
  double hidden_fraction() const { return alone_s > 0 ? 1 - exposed_s / alone_s : 0; }
};
Communication communication_of(const Traffic& traffic, double step_s, double no_comm_s);

std::string communication_text(const Traffic& traffic, const Communication& communication);
// "communication": calls, bytes and bytes per second of a step by group and collective.
void add_calls_json(nlohmann::ordered_json& json, const Traffic& traffic);
// The same, with the times of a step.
void add_communication_json(nlohmann::ordered_json& json, const Traffic& traffic, const Communication& communication);

}  // namespace welkin::bench
