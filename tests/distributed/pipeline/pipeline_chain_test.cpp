// SPDX-License-Identifier: Apache-2.0
// Several steps of a small model through the engine alone, in float64: the losses and the gradients of the chain written out, for
// numbers of micro-batches that the ranks divide and that they do not.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/text.h"
#include "number_close.h"
#include "parallel/comm/collectives.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "rank_processes.h"

namespace welkin::parallel {
namespace {

using config::PipelineSchedule;

constexpr int64_t kWidth = 4, kPredicted = 3;  // channels: three are predicted, one is known of every time
constexpr auto kDouble = at::kDouble;

at::Tensor waves(int64_t rows, int64_t columns, double phase) {
  return at::sin(at::arange(rows * columns, at::TensorOptions(kDouble)) * 0.7 + phase).view({rows, columns});
}

// Segments that each multiply by a matrix; the first reads the input, and the last adds it to what is predicted.
struct ChainModel {
  explicit ChainModel(int64_t depth) {
    for (int64_t i = 0; i < depth; ++i) weights.push_back(waves(kWidth, kWidth, static_cast<double>(i)).requires_grad_());
  }

  std::vector<model::Segment> segments() const {
    std::vector<model::Segment> all;
    for (size_t i = 0; i < weights.size(); ++i) {
      const bool is_first = i == 0, is_last = i + 1 == weights.size();
      const auto run = [weight = weights[i], is_first, is_last](model::Tensors in, const at::Tensor& input,
                                                                const model::ForwardContext& context) {
        const double of_lead = 1 + 0.1 * static_cast<double>(context.seed);
        const at::Tensor x = at::tanh((is_first ? input : in.at(0)).matmul(weight)) * of_lead;
        return model::Tensors{is_last ? x.narrow(1, 0, kPredicted) + input.narrow(1, 0, kPredicted) : x};
      };
      all.push_back({.name = cat("segment ", i), .layers = {}, .run = run, .reads_input = is_first || is_last});
    }
    return all;
  }

  std::vector<at::Tensor> weights;
};

struct ChainCase {
  PipelineSchedule schedule;
  int64_t micros, leads, members = 1;
  bool only_last = false, again = false;
};

// One step of `micros` micro-batches of one or two samples.
struct ChainStep {
  ChainCase of;

  int64_t samples(int64_t micro) const { return 1 + micro % 2; }
  at::Tensor input(int64_t micro, int64_t member = 0) const {
    return waves(samples(micro), kWidth, 0.3 * static_cast<double>(micro) + 0.2 * static_cast<double>(member));
  }
  static model::ForwardContext context(int64_t lead) { return {.seed = static_cast<uint64_t>(lead), .step = {}, .sample = {}}; }
  // Of members against the target, and against each other.
  at::Tensor loss(int64_t micro, int64_t lead, const model::Tensors& outputs) const {
    if (of.only_last && lead < of.leads) return {};
    at::Tensor sum = at::zeros({}, kDouble);
    for (const at::Tensor& output : outputs) {
      sum = sum + (output - waves(samples(micro), kPredicted, static_cast<double>(10 * lead + micro))).square().sum();
      sum = sum - 0.25 * (output - outputs.front()).square().sum();
    }
    return sum;
  }
  at::Tensor next_input(int64_t micro, int64_t lead, const at::Tensor& input, const at::Tensor& output) const {
    const at::Tensor known = at::full({samples(micro), kWidth - kPredicted}, static_cast<double>(lead + micro), kDouble);
    return at::cat({output * 0.5 + input.narrow(1, 0, kPredicted) * 0.25, known}, 1);
  }
};

// Without a pipeline. The sum of the losses; gradients accumulate.
double run_chain(const ChainModel& model, const ChainStep& step) {
  double sum = 0;
  for (int64_t micro = 0; micro < step.of.micros; ++micro) {
    model::Tensors inputs;
    for (int64_t member = 0; member < step.of.members; ++member) inputs.push_back(step.input(micro, member));
    at::Tensor total;
    for (int64_t lead = 1; lead <= step.of.leads; ++lead) {
      const at::AutoGradMode with_graph(!step.of.only_last || lead == step.of.leads);
      model::Tensors outputs;
      for (at::Tensor& input : inputs) {
        model::Tensors x;
        for (const model::Segment& segment : model.segments()) x = segment.run(std::move(x), input, ChainStep::context(lead));
        outputs.push_back(x.at(0));
        if (lead < step.of.leads) input = step.next_input(micro, lead, input, x.at(0));
      }
      const at::Tensor loss = step.loss(micro, lead, outputs);
      if (loss.defined()) total = total.defined() ? total + loss : loss;
    }
    sum += total.item<double>();
    total.backward();
  }
  return sum;
}

void expect_chain(const Group& ranks, const ChainCase& c) {
  SCOPED_TRACE(cat(config::name_of(c.schedule), ", ", c.micros, " micro-batches, ", c.leads, " leads, ", c.members, " members",
                   c.only_last ? ", last" : "", c.again ? ", again" : ""));
  const int64_t chunks = c.schedule == PipelineSchedule::Interleaved ? 2 : 1, depth = ranks.size() * chunks;
  const ChainModel wanted(depth), got(depth);
  const ChainStep of_chain{c};
  const double loss = run_chain(wanted, of_chain);

  PipelineOptions options{.schedule = c.schedule, .chunks = chunks, .stages = {}};
  if (c.schedule == PipelineSchedule::ZeroBubble) options.weights = std::make_shared<WeightQueue>();
  for (int64_t stage = 0; stage < depth; ++stage) options.stages.push_back({stage, stage + 1});
  PipelineEngine engine(got.segments(), ranks, options);
  engine.learn_shapes({of_chain.input(0), ChainStep::context(1)});
  if (c.again) {
    engine.run_stages_again(
        [&](int64_t chunk) { return std::vector{got.weights[static_cast<size_t>(chunk * ranks.size() + ranks.group_rank())]}; });
  }
  double sum = 0;
  std::vector<int64_t> passes(static_cast<size_t>(chunks), 0);
  PipelineStep step{.micros = c.micros, .leads = c.leads, .members = c.members, .only_last = c.only_last};
  step.samples = [&](int64_t micro) { return of_chain.samples(micro); };
  step.batches = [&](int64_t micro) {
    std::vector<PipelineBatch> members;
    for (int64_t member = 0; member < c.members; ++member) {
      members.push_back({of_chain.input(micro, member), ChainStep::context(1)});
    }
    return members;
  };
  step.loss = [&](int64_t micro, int64_t lead, const model::Tensors& outputs) {
    at::Tensor of_lead = of_chain.loss(micro, lead, outputs);
    if (of_lead.defined()) sum += of_lead.item<double>();
    return of_lead;
  };
  step.next_input = [&](int64_t micro, int64_t lead, const at::Tensor& input, const at::Tensor& output) {
    return of_chain.next_input(micro, lead, input, output);
  };
  step.context = [](const model::ForwardContext&, int64_t lead) { return ChainStep::context(lead); };
  step.backward = [&](const at::Tensor& root, const GradientPass& pass) {
    root.backward();
    const int64_t all = c.micros * (c.only_last ? 1 : c.leads);
    EXPECT_EQ(pass.ends_chunk && !pass.weights_wait, ++passes[static_cast<size_t>(pass.chunk)] == all && !pass.weights_wait);
  };
  const bool is_last_told = engine.run(step);
  EXPECT_EQ(is_last_told, chunks == 1 && c.schedule != PipelineSchedule::ZeroBubble);
  const double all = all_reduce(ranks, at::full({1}, sum, kDouble)).item<double>();
  EXPECT_TRUE(tests::close(all, loss, kFp64, 64 * c.micros * c.leads * c.members));
  for (int64_t stage = ranks.group_rank(); stage < depth; stage += ranks.size()) {
    const at::Tensor& want = wanted.weights[static_cast<size_t>(stage)].grad();
    const at::Tensor& have = got.weights[static_cast<size_t>(stage)].grad();
    ASSERT_TRUE(have.defined()) << stage;
    const double scale = want.abs().max().item<double>();
    EXPECT_TRUE(tests::rounds_to((have - want).abs().max().item<double>(), 0, scale, kFp64, 256 * c.micros * c.leads * c.members))
        << stage;
  }
}

const RankTest kChains("pipeline_chains", [](Connection& connection) {
  std::vector<int64_t> all(static_cast<size_t>(connection.world_size()));
  std::iota(all.begin(), all.end(), 0);
  const Group ranks = connection.make_group("chain", {.ranks = all, .place = connection.rank()});
  for (const PipelineSchedule schedule : {PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward,
                                          PipelineSchedule::Interleaved, PipelineSchedule::ZeroBubble}) {
    for (const int64_t micros : {1, 2, 4, 5}) {
      for (const int64_t leads : {1, 2, 3}) {
        for (const bool only_last : {false, true}) {
          for (const bool again : {false, true}) {
            if (again && schedule == PipelineSchedule::ZeroBubble) continue;
            for (const int64_t members : {1, 3}) {
              if (members > 1 && micros > 2) continue;
              expect_chain(ranks, {schedule, micros, leads, members, only_last && leads > 1, again});
            }
          }
        }
      }
    }
  }
});

TEST(PipelineChains, HaveTheGradientsOfOneProcess) { run_on_ranks("pipeline_chains", 2, 120); }
TEST(PipelineChains, GoThroughFourStages) { run_on_ranks("pipeline_chains", 4, 120); }

}  // namespace
}  // namespace welkin::parallel
