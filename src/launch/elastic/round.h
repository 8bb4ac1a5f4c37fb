// SPDX-License-Identifier: Apache-2.0
// A round of an elastic job: the processes that are its ranks, in their order. Values and their texts; texts that are read
// count as hostile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::launch {

// Limits of the number of ranks with which a job goes on.
struct ElasticLimits {
  int64_t least = 1, most = 1;
};

// "2:4". ConfigError naming the option.
ElasticLimits parse_limits(const std::string& text);

// A process of a job: where it runs, and how often one was started there before.
struct ProcessId {
  int64_t node = 0, local = 0, start = 0;
  bool operator==(const ProcessId&) const = default;
};
std::string text_of(const ProcessId& id);  // "0.2.1"
std::optional<ProcessId> parse_process_id(std::string_view text);

struct Round {
  int64_t number = 0;
  bool has_begun = false;  // the run has a folder of its own, whose checkpoints are to be continued
  std::string note;        // why there is a new one
  std::vector<ProcessId> members;

  // The rank of a process in the round; nullopt where it has none.
  std::optional<int64_t> rank_of(const ProcessId& id) const;
};
std::string text_of(const Round& round);
std::optional<Round> parse_round(int64_t number, const std::string& text);

// Open: the members work. Closing: one has left, or the job wants another round. Requested: a process waits to join.
enum class RoundState { Open, Closing, Requested };
std::string now_text(int64_t number, RoundState state);
struct Now {
  int64_t number = 0;
  RoundState state = RoundState::Open;
};
std::optional<Now> parse_now(const std::string& text);

}  // namespace welkin::launch
