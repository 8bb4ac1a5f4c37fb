// SPDX-License-Identifier: Apache-2.0
// The keys whose value is of several forms: `activation_checkpointing` (none, blocks, pattern:REGEX, ...), `micro_batch_size` and
// `checkpoint_interval` (a number or auto), `multistep` (a number or a list).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema/choices.h"

namespace welkin::config {

// The part of the model that the backward pass computes again.
struct Checkpointing {
  Checkpointing(CheckpointedPart of = CheckpointedPart::None) : part(of) {}  // NOLINT: a part alone says it all
  CheckpointedPart part;
  std::string pattern;    // of Pattern: a POSIX extended regular expression over whole names of sites
  double budget_gib = 0;  // of Budget: the most that a step may take; above 0

  bool operator==(const Checkpointing&) const = default;
};

template <>
inline constexpr std::string_view kNames<Checkpointing> = "none|mlp|attention|blocks|pattern:REGEX|budget:GIB";

// Samples of a forward pass.
struct MicroBatchSize {
  MicroBatchSize(int64_t number = 0) : samples(number) {}  // NOLINT: reads as the number that it is
  int64_t samples;                                         // 0: the whole local batch
  bool is_auto = false;                                    // not chosen yet: the most that fits into memory

  bool operator==(const MicroBatchSize&) const = default;
};

// Steps between checkpoints.
struct CheckpointInterval {
  CheckpointInterval(int64_t number = 0) : steps(number) {}  // NOLINT: reads as the number that it is
  int64_t steps;                                             // 0: none on the way
  bool is_auto = false;                                      // chosen by the run, from its measurements and `mtbf`

  bool operator==(const CheckpointInterval&) const = default;
};

// Steps of the model for which a sample is trained, one after the other. Each of several numbers holds for a part of the run.
struct StepCounts {
  StepCounts(int64_t number = 1) : numbers{number} {}                  // NOLINT: reads as the number that it is
  StepCounts(std::vector<int64_t> list) : numbers(std::move(list)) {}  // NOLINT: reads as the list that it is
  std::vector<int64_t> numbers;

  int64_t most() const;
  bool operator==(const StepCounts&) const = default;
};

// Parses the text. Nullopt where it is not of the forms above, or has no usable regular expression or budget:
// `problem` then gets the error.
std::optional<Checkpointing> parse_checkpointing(std::string_view text, std::string& problem);
std::string text_of(const Checkpointing& value);
std::string text_of(const MicroBatchSize& value);
std::string text_of(const CheckpointInterval& value);
std::string text_of(const StepCounts& value);  // "2", "[1, 2, 4]"

// True if the regular expression matches the whole name. It must come from parse_checkpointing(): the time of matching then
// grows at most with the product of both lengths.
bool matches_regex(const std::string& pattern, const std::string& name);

}  // namespace welkin::config
