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

Row all_forward(const PipelineShape& shape, int64_t rank) {
  Row row;
  for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    for (int64_t micro = 0; micro < shape.micros; ++micro) row.push_back({PassKind::Forward, chunk * shape.ranks + rank, micro});
  }
  return row;
}

Row all_forward_then_backward(const PipelineShape& shape, int64_t rank) {
  Row row = all_forward(shape, rank);
  for (int64_t chunk = shape.chunks; chunk-- > 0;) {
    for (int64_t micro = 0; micro < shape.micros; ++micro) row.push_back({PassKind::Backward, chunk * shape.ranks + rank, micro});
  }
  return row;
}

// The n-th forward (or backward) pass of a rank: groups of `ranks` micro-batches go through one chunk after the other.
Pass interleaved_pass(const PipelineShape& shape, int64_t rank, PassKind kind, int64_t n) {
  const int64_t group = n / shape.stages(), within = n % shape.stages();
  const int64_t turn = within / shape.ranks;
  const int64_t chunk = kind == PassKind::Forward ? turn : shape.chunks - 1 - turn;
  return {kind, chunk * shape.ranks + rank, group * shape.ranks + within % shape.ranks};
}

// With one chunk this is 1f1b.
Row one_forward_one_backward(const PipelineShape& shape, int64_t rank) {
  const int64_t total = shape.micros * shape.chunks;
  const int64_t later_ranks = shape.ranks - 1 - rank;
  const int64_t wanted = shape.chunks == 1 ? later_ranks : 2 * later_ranks + (shape.chunks - 1) * shape.ranks;
  const int64_t warm_up = std::min(wanted, total);
  Row row;
  for (int64_t n = 0; n < warm_up; ++n) row.push_back(interleaved_pass(shape, rank, PassKind::Forward, n));
  for (int64_t n = 0; n < total; ++n) {
    if (warm_up + n < total) row.push_back(interleaved_pass(shape, rank, PassKind::Forward, warm_up + n));
    row.push_back(interleaved_pass(shape, rank, PassKind::Backward, n));
  }
  return row;
}

// Rank r lets r gradients of weights wait: as many as its gradients of inputs are awaited by earlier ranks, and as many as its
// share of held activations leaves room for.
Row zero_bubble(const PipelineShape& shape, int64_t rank) {
  const int64_t waiting = std::min(rank, shape.micros);
  Row row;
  int64_t weights_done = 0;
  for (const Pass& pass : one_forward_one_backward(shape, rank)) {
    if (pass.kind == PassKind::Forward) {
      row.push_back(pass);
      continue;
    }
    row.push_back({PassKind::BackwardInput, pass.stage, pass.micro});
    if (pass.micro + 1 - weights_done > waiting) row.push_back({PassKind::BackwardWeight, pass.stage, weights_done++});
  }
  while (weights_done < shape.micros) row.push_back({PassKind::BackwardWeight, rank, weights_done++});
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
  if (shape.ranks < 1 || shape.micros < 1 || shape.chunks < 1) {
    return {cat("a pipeline needs ranks, micro-batches and chunks: ranks=", shape.ranks, ", micro-batches=", shape.micros,
                ", chunks=", shape.chunks),
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

Schedule make_schedule(PipelineSchedule kind, const PipelineShape& shape) {
  if (const ShapeProblem problem = problem_of(kind, shape); !problem.what.empty()) {
    throw ConfigError("parallel", problem.what, problem.remedy);
  }
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
