// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/schedule_messages.h"

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace welkin::parallel {
namespace {

struct Leaving {
  StageMessage message;
  int64_t to_stage = 0;
};

// The message that a pass makes for another stage.
std::optional<Leaving> leaving(const Pass& pass, const PipelineShape& shape) {
  switch (pass.kind) {
    case PassKind::Forward:
      if (pass.stage + 1 == shape.chain()) return {};
      return Leaving{{pass.stage, pass.micro, false}, pass.stage + 1};
    case PassKind::Backward:
    case PassKind::BackwardInput:
      if (pass.stage == shape.first_with_gradient()) return {};
      return Leaving{{pass.stage - 1, pass.micro, true}, pass.stage - 1};
    case PassKind::BackwardWeight:
      break;
  }
  return {};
}

size_t user_of(const StageMessage& message, int64_t stage, const std::vector<Pass>& row) {
  const auto used = std::ranges::find_if(row, [&](const Pass& pass) {
    const bool is_backward = pass.kind == PassKind::Backward || pass.kind == PassKind::BackwardInput;
    const bool fits = message.is_gradient ? is_backward : pass.kind == PassKind::Forward;
    return fits && pass.stage == stage && pass.micro == message.micro;
  });
  WELKIN_CHECK(used != row.end(), "every message of a schedule is used");
  return static_cast<size_t>(used - row.begin());
}

}  // namespace

std::vector<TimedMessage> messages_between(const Schedule& schedule, int64_t from, int64_t to) {
  std::vector<TimedMessage> messages;
  const std::vector<Pass>& row = schedule.rows.at(static_cast<size_t>(from));
  for (size_t i = 0; i < row.size(); ++i) {
    const std::optional<Leaving> made = leaving(row[i], schedule.shape);
    if (!made || schedule.shape.rank_of(made->to_stage) != to) continue;
    messages.push_back({.message = made->message,
                        .made_by = i,
                        .used_by = user_of(made->message, made->to_stage, schedule.rows.at(static_cast<size_t>(to)))});
  }
  return messages;
}

}  // namespace welkin::parallel
