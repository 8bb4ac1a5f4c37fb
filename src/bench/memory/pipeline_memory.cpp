// SPDX-License-Identifier: Apache-2.0
#include "bench/memory/pipeline_memory.h"

#include <ATen/ops/arange.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "config/schema/batch_plan.h"
#include "data/pipeline/pipeline.h"
#include "observe/timeline/span.h"
#include "parallel/comm/collectives.h"
#include "train/device/memory_limit.h"
#include "train/step/step.h"

namespace welkin::bench {
namespace {

int64_t sum_of(const std::vector<int64_t>& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

// Reads the memory whenever a step marks that a backward pass, or the reduction after the last one, begins.
class MemoryWatch : public observe::SpanSink {
 public:
  explicit MemoryWatch(const parallel::ParamTable& table) : table_(table), held_{.gradients = rows()} {}

  void start() {
    before_ = train::cpu_memory_allocated();
    held_ = {.gradients = rows()};
  }
  const StepHeld& held() const { return held_; }

  void begin(std::string_view name) noexcept override {
    if (name == "backward" || name == "reduce") look();
  }
  void end(std::string_view /*name*/, observe::SpanClock::time_point /*began*/) noexcept override {}

 private:
  std::vector<int64_t> rows() const { return std::vector<int64_t>(table_.rows().size()); }

  void look() noexcept {
    std::vector<int64_t> gradients = rows();
    std::ranges::transform(table_.rows(), gradients.begin(), gradient_bytes_of);
    const int64_t in_gradients = sum_of(gradients);
    held_.activations = std::max(held_.activations, train::cpu_memory_allocated() - before_ - in_gradients);
    if (in_gradients > sum_of(held_.gradients)) held_.gradients = std::move(gradients);
  }

  const parallel::ParamTable& table_;
  int64_t before_ = 0;
  StepHeld held_;
};

// The micro-batches of one step, repeated without end.
class MicroBatches {
 public:
  MicroBatches(const config::BatchPlan& plan, at::Tensor input, at::Tensor target)
      : plan_(plan), input_(std::move(input)), target_(std::move(target)) {}

  data::Batch next() {
    const int64_t first = micro_ * plan_.micro, count = std::min(plan_.micro, plan_.local - first);
    data::Batch batch;
    batch.input = input_.narrow(0, 0, count);
    batch.target = target_.narrow(0, 0, count);
    batch.sample = at::arange(first, first + count, at::kLong);
    batch.indices.resize(static_cast<size_t>(count));
    std::iota(batch.indices.begin(), batch.indices.end(), first);
    batch.micro = micro_;
    batch.num_micro = plan_.micros();
    batch.step_samples = plan_.local;
    batch.first_position = first;
    micro_ = (micro_ + 1) % plan_.micros();
    return batch;
  }

 private:
  config::BatchPlan plan_;
  at::Tensor input_, target_;
  int64_t micro_ = 0;
};

}  // namespace

int64_t gradient_bytes_of(const parallel::ParamRow& row) {
  const auto bytes_of = [](const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; };
  const at::Tensor whole = row.local.grad(), piece = row.shard.defined() ? row.shard.grad() : at::Tensor();
  const bool is_view = whole.defined() && piece.defined() && piece.storage().is_alias_of(whole.storage());
  return bytes_of(whole) + (is_view ? 0 : bytes_of(piece));
}

StepHeld count_pipeline_steps(train::TrainSetup& setup, const config::RunConfig& config, const at::Tensor& input,
                              const at::Tensor& target, const parallel::World& world, int64_t dataset_size) {
  MemoryWatch watch(setup.table);
  observe::Tracer tracer;
  tracer.add_sink(watch);
  const auto step =
      train::make_step(setup, config, {.world_group = world.world_group(), .dataset_size = dataset_size, .tracer = &tracer});
  MicroBatches batches(config::batch_plan(config, setup.layout.replicas.size()), input, target);
  const auto make_step = [&] {
    step->run([&batches] { return batches.next(); });
    parallel::barrier(world.world_group());
  };
  make_step();  // memory that is kept from one step to the next is there from now on
  // A received message may be freed a little later, so the median of several counts is taken.
  std::array<StepHeld, 5> counts;
  for (StepHeld& count : counts) {
    watch.start();
    make_step();
    count = watch.held();
  }
  std::ranges::sort(counts, {}, &StepHeld::activations);
  return counts[counts.size() / 2];
}

}  // namespace welkin::bench
