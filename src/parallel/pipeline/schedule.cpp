// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/schedule.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

using config::PipelineSchedule;
using Row = std::vector<Pass>;

// A rank's stages in the chain: [first, last) of them, each `ranks` behind the one before.
struct Turns {
  int64_t first = 0, last = 0;

  int64_t count() const { return last - first; }
};

Turns all_turns(const PipelineShape& shape) { return {0, shape.leads * shape.chunks}; }
Turns turns_with_gradient(const PipelineShape& shape) {
  return {shape.first_with_gradient() / shape.ranks, shape.leads * shape.chunks};
}

// One turn after the other, each with all micro-batches.
void add_forward(Row& row, const PipelineShape& shape, int64_t rank, const Turns& turns) {
  for (int64_t turn = turns.first; turn < turns.last; ++turn) {
    for (int64_t micro = 0; micro < shape.micros; ++micro) row.push_back({PassKind::Forward, turn * shape.ranks + rank, micro});
  }
}

Row all_forward(const PipelineShape& shape, int64_t rank) {
  Row row;
  add_forward(row, shape, rank, all_turns(shape));
  return row;
}

Row all_forward_then_backward(const PipelineShape& shape, int64_t rank) {
  Row row = all_forward(shape, rank);
  const Turns turns = turns_with_gradient(shape);
  for (int64_t turn = turns.last; turn-- > turns.first;) {
    for (int64_t micro = 0; micro < shape.micros; ++micro) row.push_back({PassKind::Backward, turn * shape.ranks + rank, micro});
  }
  return row;
}

// Sizes of the groups of micro-batches that pass through the turns together: `ranks` if that divides their number, else up to
// 2 `ranks` - 1, larger ones first. In smaller groups ranks would idle between turns.
std::vector<int64_t> groups_of(const PipelineShape& shape) {
  const int64_t count = std::max<int64_t>(1, shape.micros / shape.ranks);
  std::vector<int64_t> sizes(static_cast<size_t>(count), shape.micros / count);
  for (int64_t i = 0; i < shape.micros % count; ++i) ++sizes[static_cast<size_t>(i)];
  return sizes;
}

// Forward (or backward) passes of a rank: each group of micro-batches makes one turn after the other.
Row grouped_passes(const PipelineShape& shape, int64_t rank, PassKind kind, const Turns& turns) {
  Row row;
  int64_t first = 0;
  for (const int64_t size : groups_of(shape)) {
    for (int64_t i = 0; i < turns.count(); ++i) {
      const int64_t turn = kind == PassKind::Forward ? turns.first + i : turns.last - 1 - i;
      for (int64_t micro = first; micro < first + size; ++micro) row.push_back({kind, turn * shape.ranks + rank, micro});
    }
    first += size;
  }
  return row;
}

// With one turn this is 1f1b, with several interleaved.
Row one_forward_one_backward(const PipelineShape& shape, int64_t rank) {
  const Turns turns = turns_with_gradient(shape);
  const Row forward = grouped_passes(shape, rank, PassKind::Forward, turns);
  const Row backward = grouped_passes(shape, rank, PassKind::Backward, turns);
  const int64_t later_ranks = shape.ranks - 1 - rank;
  const int64_t wanted = turns.count() == 1 ? later_ranks : 2 * later_ranks + (turns.count() - 1) * groups_of(shape).front();
  const size_t warm_up = std::min(static_cast<size_t>(wanted), forward.size());
  Row row;
  add_forward(row, shape, rank, {0, turns.first});
  row.insert(row.end(), forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(warm_up));
  for (size_t n = 0; n < backward.size(); ++n) {
    if (warm_up + n < forward.size()) row.push_back(forward[warm_up + n]);
    row.push_back(backward[n]);
  }
  return row;
}

// Rank r delays r weight gradients: as many as earlier ranks wait for its input gradients, and as its share of held activations
// has room for.
Row zero_bubble(const PipelineShape& shape, int64_t rank) {
  const auto waiting = static_cast<size_t>(std::min(rank, shape.micros));
  Row row, halves;  // halves: the second halves of backward passes, in the order of the first
  size_t done = 0;
  for (const Pass& pass : one_forward_one_backward(shape, rank)) {
    if (pass.kind == PassKind::Forward) {
      row.push_back(pass);
      continue;
    }
    row.push_back({PassKind::BackwardInput, pass.stage, pass.micro});
    halves.push_back({PassKind::BackwardWeight, pass.stage, pass.micro});
    if (halves.size() - done > waiting) row.push_back(halves[done++]);
  }
  row.insert(row.end(), halves.begin() + static_cast<std::ptrdiff_t>(done), halves.end());
  return row;
}

Row row_of(PipelineSchedule kind, const PipelineShape& shape, int64_t rank) {
  switch (kind) {
    case PipelineSchedule::GPipe:
      return all_forward_then_backward(shape, rank);
    case PipelineSchedule::ZeroBubble:
      return zero_bubble(shape, rank);
    case PipelineSchedule::OneForwardOneBackward:
    case PipelineSchedule::Interleaved:
      break;
  }
  return one_forward_one_backward(shape, rank);
}

template <typename RowOf>
Schedule with_rows(PipelineSchedule kind, const PipelineShape& shape, const RowOf& row) {
  Schedule schedule{.kind = kind, .shape = shape, .rows = {}};
  for (int64_t rank = 0; rank < shape.ranks; ++rank) schedule.rows.push_back(row(rank));
  return schedule;
}

}  // namespace

ShapeProblem problem_of(PipelineSchedule kind, const PipelineShape& shape) {
  const std::string schedule(config::name_of(kind));
  if (shape.ranks < 1 || shape.micros < 1 || shape.chunks < 1 || shape.leads < 1) {
    return {cat("a pipeline needs ranks, micro-batches, chunks and steps of the model: ranks=", shape.ranks,
                ", micro-batches=", shape.micros, ", chunks=", shape.chunks, ", multistep=", shape.leads),
            "Take numbers from 1 on"};
  }
  if (kind != PipelineSchedule::Interleaved && shape.chunks > 1) {
    return {cat("this schedule has one chunk of the model per rank: pipeline_schedule=", schedule,
                ", pipeline_chunks=", shape.chunks),
            "Set pipeline_chunks to 1, or take pipeline_schedule: interleaved"};
  }
  if (kind != PipelineSchedule::Interleaved) return {};
  if (shape.chunks < 2) {
    return {cat("interleaving needs several chunks of the model per rank: pipeline_chunks=", shape.chunks),
            "Take a pipeline_chunks from 2 on, or pipeline_schedule: 1f1b"};
  }
  if (shape.micros % shape.ranks == 0) return {};
  const int64_t below = shape.micros / shape.ranks * shape.ranks;
  const std::string near = below > 0 ? cat(below, " or ", below + shape.ranks) : cat(shape.ranks);
  return {cat("the ranks of the pipeline do not divide the micro-batches of a step: pipeline_schedule=", schedule,
              ", pipeline_parallel=", shape.ranks, ", micro-batches=", shape.micros),
          cat("Choose a micro_batch_size that makes ", near, " micro-batches, or take pipeline_schedule: 1f1b")};
}

void check_shape(PipelineSchedule kind, const PipelineShape& shape) {
  if (const ShapeProblem problem = problem_of(kind, shape); !problem.what.empty()) {
    throw ConfigError("parallel", problem.what, problem.remedy);
  }
}

Schedule make_schedule(PipelineSchedule kind, const PipelineShape& shape) {
  check_shape(kind, shape);
  return with_rows(kind, shape, [&](int64_t rank) { return row_of(kind, shape, rank); });
}

Schedule schedule_of_short_step(PipelineSchedule kind, const PipelineShape& shape) {
  if (problem_of(kind, shape).what.empty()) return make_schedule(kind, shape);
  return with_rows(PipelineSchedule::GPipe, shape, [&](int64_t rank) { return all_forward_then_backward(shape, rank); });
}

Schedule make_forward_schedule(const PipelineShape& shape) {
  return with_rows(PipelineSchedule::GPipe, shape, [&](int64_t rank) { return all_forward(shape, rank); });
}

}  // namespace welkin::parallel
