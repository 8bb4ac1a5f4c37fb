// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling/overlap_bench.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "bench/scaling/bench_timing.h"
#include "parallel/c10d/raw_c10d.h"
#include "parallel/comm/fake_group.h"
#include "parallel/shard/data_parallel.h"
#include "parallel/sharding/sharded_parallel.h"
#include "train/learn/loss.h"

namespace welkin::bench {
namespace {

constexpr int64_t kFigureRepeats = 5;  // of a sum alone
constexpr int64_t kFigureTurns = 11;   // a step varies by as much as the link adds to it
constexpr double kNoLimit = 1e15;      // bytes per second

// The tenth percentile: in these repetitions other processes of the machine did not interfere.
double undisturbed(std::vector<double> values) {
  const auto tenth = static_cast<std::ptrdiff_t>(values.size() / 10);
  std::nth_element(values.begin(), values.begin() + tenth, values.end());
  return *(values.begin() + tenth);
}

void set_link(parallel::EmulatedLink& link, double bytes_per_second) {
  link.latency_s = 0;
  link.bytes_per_second = bytes_per_second;
}

void set_turns(OverlapResult& figure, const LinkTurns& turns) {
  figure.step_s = turns.step_s;
  figure.compute_s = turns.compute_s;
  figure.gloo_step_s = turns.gloo_step_s;
  figure.added_s = turns.added_s;
}

// Steps of a ViT in turns: over the link, without exchange, and over Gloo alone, so that other load meets all alike.
class OverlapRig {
 public:
  OverlapRig(const OverlapProblem& problem, const model::ModelEntry& vit, const parallel::Group& replicas,
             parallel::EmulatedLink& link)
      : problem_(problem), replicas_(replicas), link_(link), model_(vit.build(problem.vit.config(), BenchVit::shape())) {
    model_->initialise(1);
    model_->train();
    table_ = parallel::ParamTable::of(*model_);
    for (const parallel::ParamRow& row : table_.rows()) {
      row.local.register_hook([this](const at::Tensor& /*gradient*/) { since_gradient_.restart(); });
    }
    const model::ModelShape shape = BenchVit::shape();
    fields_ = at::ones({problem.vit.samples, shape.in_channels, shape.grid[0], shape.grid[1]});
  }

  OverlapResult measure() {
    set_link(link_, kNoLimit);
    exchange_ = std::make_unique<parallel::DataParallel>(table_, replicas_,
                                                         parallel::DataParallelOptions{.bucket_cap_mb = problem_.bucket_cap_mb});
    step(true);  // the buckets are rebuilt after the first step
    OverlapResult figure{.gradient_bytes = exchange_->bytes_per_step()};
    const at::Tensor flat = at::zeros({figure.gradient_bytes / 4});
    std::vector<double> gloo;
    for (int64_t i = 0; i < kFigureRepeats; ++i) gloo.push_back(seconds_of([&] { all_reduce_in_place(replicas_, flat); }));
    figure.gloo_s = median_of(gloo);
    figure.link_s = problem_.slower * figure.gloo_s;
    run_turns(figure);
    return figure;
  }

 private:
  void run_turns(OverlapResult& figure) {
    const auto time = [&](bool exchanges, double bytes_per_second) {
      set_link(link_, bytes_per_second);
      return step_together(replicas_, [&] { step(exchanges); });
    };
    std::vector<double> exposed;
    const auto over_link = [&] {
      const StepTime found = time(true, static_cast<double>(figure.gradient_bytes) / figure.link_s);
      exposed.push_back(-of_slowest(replicas_, -after_gradients_));  // the last rank's: others wait for its gradients, too
      return found;
    };
    set_turns(figure, measure_turns(
                          kFigureTurns, over_link, [&] { return time(false, kNoLimit); }, [&] { return time(true, kNoLimit); }));
    figure.exposed_s = median_of(exposed);
  }

  void step(bool exchanges) {
    exchange_->backward(loss_->per_sample(model_->forward(fields_, {}), fields_).sum(), exchanges);
    after_gradients_ = since_gradient_.seconds();
    exchange_->clear_gradients();
  }

  double seconds_of(const std::function<void()>& work) const { return seconds_together(replicas_, work); }

  const OverlapProblem& problem_;
  const parallel::Group& replicas_;
  parallel::EmulatedLink& link_;
  model::ModelPtr model_;
  parallel::ParamTable table_;
  std::unique_ptr<parallel::DataParallel> exchange_;
  train::LossPtr loss_ = train::relative_l2();
  at::Tensor fields_;
  Stopwatch since_gradient_;  // since the last gradient; on a CPU one thread runs the backward pass
  double after_gradients_ = 0;
};

// A ViT whose training state is sharded over the group; its steps end before the update.
class ShardedRig {
 public:
  ShardedRig(const OverlapProblem& problem, const model::ModelEntry& vit, const parallel::Group& shards)
      : model_(vit.build(problem.vit.config(), BenchVit::shape())) {
    model_->initialise(1);
    model_->train();
    table_ = parallel::ParamTable::of(*model_);
    exchange_ = std::make_unique<parallel::ShardedParallel>(
        *model_, table_, parallel::ShardGroups{.shards = shards, .replicas = {}},
        parallel::ShardingOptions{.stage = problem.shard, .bucket_cap_mb = problem.bucket_cap_mb});
    const model::ModelShape shape = BenchVit::shape();
    fields_ = at::ones({problem.vit.samples, shape.in_channels, shape.grid[0], shape.grid[1]});
  }

  int64_t gradient_bytes() const { return exchange_->bytes_per_step(); }

  void step() {
    exchange_->before_forward();
    const at::Tensor output = model_->forward(fields_, {});
    exchange_->after_forward();
    exchange_->backward(loss_->per_sample(output, fields_).sum(), true);
    exchange_->clear_gradients();
    exchange_->after_update();
  }

 private:
  model::ModelPtr model_;
  parallel::ParamTable table_;
  std::unique_ptr<parallel::ShardedParallel> exchange_;
  train::LossPtr loss_ = train::relative_l2();
  at::Tensor fields_;
};

}  // namespace

OverlapResult measure_sharded_overlap(const OverlapProblem& problem, const model::ModelEntry& vit, const parallel::Group& shards,
                                      parallel::EmulatedLink& link) {
  set_link(link, kNoLimit);
  ShardedRig sending(problem, vit, shards);
  ShardedRig silent(problem, vit, parallel::fake_group("silent", {.ranks = shards.ranks(), .place = shards.group_rank()}));
  const auto time = [&](ShardedRig& rig) { return step_together(shards, [&] { rig.step(); }); };
  time(sending), time(silent);
  OverlapResult figure{.gradient_bytes = sending.gradient_bytes()};
  const at::Tensor flat = at::zeros({figure.gradient_bytes / 4});
  std::vector<double> gloo;
  for (int64_t i = 0; i < kFigureRepeats; ++i)
    gloo.push_back(seconds_together(shards, [&] { all_reduce_in_place(shards, flat); }));
  figure.gloo_s = median_of(gloo);
  const auto over_link = [&] {
    set_link(link, static_cast<double>(figure.gradient_bytes) / (problem.slower * figure.gloo_s));
    const int64_t before = link.busy_ns;
    const StepTime found = time(sending);
    figure.link_s = 1e-9 * static_cast<double>(link.busy_ns - before);
    set_link(link, kNoLimit);
    return found;
  };
  set_turns(figure, measure_turns(
                        kFigureTurns, over_link, [&] { return time(silent); }, [&] { return time(sending); }));
  figure.exposed_s = std::max(0.0, figure.step_s - figure.compute_s);
  return figure;
}

OverlapResult measure_overlap(const OverlapProblem& problem, const model::ModelEntry& vit, const parallel::Group& replicas,
                              parallel::EmulatedLink& link) {
  return OverlapRig(problem, vit, replicas, link).measure();
}

double measure_adapter(const parallel::Group& group, int64_t bytes) {
  constexpr int64_t kTurns = 400;
  const at::Tensor values = at::zeros({bytes / 4});
  const parallel::Group silent = parallel::fake_group("silent", {.ranks = group.ranks(), .place = group.group_rank()});
  std::vector<double> adapter, raw;
  for (int64_t i = 0; i < kTurns; ++i) {
    const Stopwatch one;
    all_reduce_in_place(silent, values);  // check, record and deadline, but nothing is sent
    adapter.push_back(one.seconds());
    parallel::barrier(group);
    const Stopwatch other;
    raw_all_reduce(group, values);
    raw.push_back(other.seconds());
  }
  return 1 + of_slowest(group, undisturbed(adapter)) / of_slowest(group, undisturbed(raw));
}

nlohmann::ordered_json overlap_json(const OverlapResult& figure) {
  return {{"gradient_bytes", figure.gradient_bytes},
          {"gloo_s", figure.gloo_s},
          {"link_s", figure.link_s},
          {"exposed_s", figure.exposed_s},
          {"hidden_fraction", figure.hidden_fraction()},
          {"added_s", figure.added_s},
          {"added_fraction", figure.added_fraction()},
          {"compute_s", figure.compute_s},
          {"step_s", figure.step_s},
          {"gloo_step_s", figure.gloo_step_s}};
}

}  // namespace welkin::bench
