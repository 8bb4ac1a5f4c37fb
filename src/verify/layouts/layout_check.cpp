// SPDX-License-Identifier: Apache-2.0
#include "verify/layouts/layout_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/shard/shards.h"
#include "verify/layouts/layout_problem.h"
#include "verify/layouts/layout_training.h"
#include "verify/layouts/serial_runs.h"

namespace welkin::verify {
namespace {

// Reordered sums of at most some thousand float64 terms, through two layers and three steps.
constexpr double kBound = 1e-9;

// The bound for gradients that travel in fewer bits, relative to the sum of the largest elements that the ranks send. Each part
// is rounded once, and so is each of the n - 1 partial sums, none of which exceeds that sum, by at most the unit roundoff
// (docs/reference/numerics.md). Loss and weights follow the gradients with factors below one.
double bound_of(const LayoutCase& c) {
  if (c.comm_dtype == parallel::GradientDtype::Same) return kBound;
  const auto ranks = static_cast<double>(c.exchange_size());
  return ranks * (c.comm_dtype == parallel::GradientDtype::Bf16 ? 0x1p-8 : 0x1p-11);
}

// Below its smallest normal number a type has an absolute rounding error: that number times the unit roundoff.
double smallest_normal(parallel::GradientDtype comm_dtype) {
  return comm_dtype == parallel::GradientDtype::Fp16 ? 0x1p-14 : 0x1p-126;
}

double relative_error(const at::Tensor& value, const at::Tensor& wanted, double scale) {
  return (value.cpu() - wanted).abs().max().item<double>() / scale;
}

// The part of a serial tensor that a row holds on this rank.
at::Tensor local_part(const at::Tensor& whole, const parallel::ParamRow& row, const parallel::MeshGroups& groups) {
  at::Tensor part = whole;
  for (const parallel::Axis axis : {parallel::Axis::Tp, parallel::Axis::Cp}) {
    const parallel::Placement& placement = row.placements[axis];
    if (!placement.sharded()) continue;
    const parallel::Group& group = groups.along(axis);
    part = parallel::shard_of(part, {placement.dim(), placement.parts()}, group.group_rank(), group.size());
  }
  return part;
}

struct NamedError {
  std::string name;
  double error;
};

// The row of this name; nothing if another stage of a pipeline has it.
std::optional<size_t> row_named(const parallel::ParamTable& table, const std::string& name) {
  const auto found = std::ranges::find(table.rows(), name, &parallel::ParamRow::name);
  if (found == table.rows().end()) return std::nullopt;
  return static_cast<size_t>(found - table.rows().begin());
}

std::vector<NamedError> errors_of(const LayoutRun& run, const LayoutRun& alone, const parallel::MeshGroups& groups,
                                  const LayoutCase& c) {
  std::vector<NamedError> errors;
  for (size_t step = 0; step < alone.losses.size(); ++step) {
    errors.push_back({cat("loss of step ", step), std::abs(run.losses[step] / alone.losses[step] - 1)});
  }
  const parallel::Group& dp = groups.along(parallel::kDp);
  const int64_t local = c.batch / dp.size();
  const auto compare_samples = [&](const char* name, const at::Tensor& value, const at::Tensor& whole) {
    const at::Tensor wanted = whole.narrow(0, dp.group_rank() * local, local);
    errors.push_back({name, value.defined() ? relative_error(value, wanted, magnitude(whole)) : 0});
  };
  compare_samples("output", run.output, alone.output);
  compare_samples("input gradient", run.input_gradient, alone.input_gradient);
  // A key's bias has no influence: its gradient is rounding noise, judged on the scale of the others.
  double largest = 0;
  for (const at::Tensor& gradient : alone.gradients) largest = std::max(largest, magnitude(gradient));
  for (size_t i = 0; i < alone.table.rows().size(); ++i) {
    const std::string& name = alone.table.rows()[i].name;
    const std::optional<size_t> own = row_named(run.table, name);
    if (!own) {  // equally many entries on every rank
      errors.push_back({cat("gradient of ", name), 0});
      errors.push_back({cat("trained ", name), 0});
      continue;
    }
    const parallel::ParamRow& row = run.table.rows()[*own];
    double scale = std::max(magnitude(alone.gradients[i]), 1e-4 * largest);
    if (c.comm_dtype != parallel::GradientDtype::Same) {
      const double sent = run.sent[static_cast<int64_t>(i)].item<double>();
      scale = sent + smallest_normal(c.comm_dtype) + kBound / bound_of(c) * scale;  // two bounds, as one relative to bound_of
    }
    if (run.gradients.empty()) {
      errors.push_back({cat("gradient of ", name), 0});
    } else {
      errors.push_back({cat("gradient of ", row.name),
                        relative_error(run.gradients[*own], local_part(alone.gradients[i], row, groups), scale)});
    }
    errors.push_back({cat("trained ", row.name),
                      relative_error(run.weights[*own], local_part(alone.weights[i], row, groups), magnitude(alone.weights[i]))});
  }
  return errors;
}

// Takes the largest error over all ranks, tensor by tensor; a NaN anywhere counts as infinite.
void worst_over_ranks(const parallel::Group& world, std::vector<NamedError>& errors) {
  at::Tensor values = at::empty({static_cast<int64_t>(errors.size())}, at::kDouble);
  for (size_t i = 0; i < errors.size(); ++i) {
    values[static_cast<int64_t>(i)] = std::isfinite(errors[i].error) ? errors[i].error : 1e300;
  }
  values = all_reduce(world, values, parallel::Reduction::Max);
  for (size_t i = 0; i < errors.size(); ++i) errors[i].error = values[static_cast<int64_t>(i)].item<double>();
}

// The folder is removed with this object, on every way out.
class RemovedFolder {
 public:
  explicit RemovedFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  RemovedFolder(const RemovedFolder&) = delete;
  RemovedFolder& operator=(const RemovedFolder&) = delete;
  ~RemovedFolder() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

 private:
  std::filesystem::path folder_;
};

class LayoutChecker {
 public:
  LayoutChecker(const LayoutSubject& subject, const LayoutRanks& ranks)
      : subject_(subject), ranks_(ranks), alone_(subject, ranks) {}

  // Every rank calls it with the same cases, before they are checked.
  void learn(const std::vector<LayoutCase>& cases) { alone_.learn(cases); }

  LayoutReport check(const LayoutCase& c) {
    LayoutReport report{.layout = c, .refused = refusal_of(subject_, c)};
    if (!report.refused.empty()) return report;
    const Stopwatch watch;
    const parallel::MeshGroups& groups = groups_of(c);
    judge(report, errors_of(train_under(subject_, c, groups, ranks_.device), alone_.of(c), groups, c), groups);
    report.seconds = watch.seconds();
    return report;
  }

  LayoutReport check(const LayoutMove& move, const parallel::Group& world, const std::filesystem::path& folder) {
    const LayoutCase& after = move.after;
    LayoutReport report{.layout = move.before, .after = after, .refused = refusal_of(subject_, move.before)};
    if (report.refused.empty()) report.refused = refusal_of(subject_, after);
    if (!report.refused.empty()) return report;
    const Stopwatch watch;
    const parallel::MeshGroups& groups = groups_of(after);
    const LayoutRun run =
        train_moved(subject_, {move.before, groups_of(move.before)}, {after, groups}, world, folder, ranks_.device);
    judge(report, errors_of(run, alone_.of(after), groups, after), groups);
    report.seconds = watch.seconds();
    return report;
  }

 private:
  const parallel::MeshGroups& groups_of(const LayoutCase& c) {
    const parallel::Mesh mesh = c.mesh();
    const std::string name = cat(c.order, " ", mesh.size(parallel::Axis::DpReplicate), " ", mesh.size(parallel::kDp), " ",
                                 c.sizes.tp, " ", c.sizes.cp, " ", c.sizes.pp, " ", c.sizes.d, " ", c.sizes.h, " ", c.sizes.w);
    if (!meshes_.contains(name)) meshes_.emplace(name, parallel::MeshGroups(ranks_.make_group, ranks_.rank, mesh));
    return meshes_.at(name);
  }

  static void judge(LayoutReport& report, std::vector<NamedError> errors, const parallel::MeshGroups& groups) {
    worst_over_ranks(groups.along(parallel::kDp | parallel::Axis::Tp | parallel::kSampleParts), errors);
    worst_over_ranks(groups.along(parallel::Axis::Pp), errors);
    report.num_tensors = static_cast<int64_t>(errors.size());
    for (const NamedError& error : errors) {
      if (error.error <= report.worst) continue;
      report.worst = error.error;
      report.worst_name = error.name;
    }
  }

  const LayoutSubject& subject_;
  const LayoutRanks& ranks_;
  SerialRuns alone_;
  std::map<std::string, parallel::MeshGroups> meshes_;
};

}  // namespace

parallel::AxisSet axes_of(const LayoutSubject& subject) {
  return has_segments(subject) ? subject.plan.axes | parallel::Axis::Pp : subject.plan.axes;
}

std::string refusal_of(const LayoutSubject& subject, const LayoutCase& c) {
  try {
    subject.plan.make(problem_config(c, subject.model), problem_shape(subject.model), c.mesh(), c.options);
    return {};
  } catch (const ConfigError& error) {
    return error.what();
  }
}

bool LayoutReport::passed() const { return num_tensors > 0 && worst <= bound_of(layout); }

std::string LayoutReport::text() const {
  return after ? cat("checkpoint of ", layout.text(), " -> ", after->text()) : layout.text();
}

std::vector<LayoutReport> check_layouts(const LayoutSubject& subject, const LayoutRanks& ranks,
                                        const std::vector<LayoutCase>& cases, const OnReport& report) {
  LayoutChecker checker(subject, ranks);
  checker.learn(cases);
  std::vector<LayoutReport> reports;
  for (const LayoutCase& c : cases) {
    reports.push_back(checker.check(c));
    if (report) report(reports.back());
  }
  return reports;
}

std::vector<LayoutReport> check_moves(const LayoutSubject& subject, const LayoutRanks& ranks,
                                      const std::vector<LayoutMove>& moves, const std::filesystem::path& folder,
                                      const OnReport& report) {
  LayoutChecker checker(subject, ranks);
  const RemovedFolder removed(ranks.rank == 0 ? folder : std::filesystem::path());
  std::vector<LayoutCase> continued;
  for (const LayoutMove& move : moves) continued.push_back(move.after);
  checker.learn(continued);
  std::vector<LayoutReport> reports;
  for (size_t i = 0; i < moves.size(); ++i) {
    const std::filesystem::path step = folder / cat("step_", i);
    reports.push_back(checker.check(moves[i], ranks.world, step));
    parallel::barrier(ranks.world);
    const RemovedFolder read(ranks.rank == 0 ? step : std::filesystem::path());
    if (report) report(reports.back());
  }
  return reports;
}

}  // namespace welkin::verify
