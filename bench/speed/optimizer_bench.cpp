// SPDX-License-Identifier: Apache-2.0
// bench_optimizer: one fused Adam step on the parameters of the whole U-Net (117 M) against what memory allows.
//   bench_optimizer [THREADS [ROUNDS [WIDTH [NAME [STATE]]]]]      one JSON object
// NAME is another optimizer, STATE its optimizer_state: both are timed in turns with Adam in float32, as "other_ms".
// The floor is the time that the 28 bytes per parameter of a step (weight and both averages read and written, gradient read)
// take at the best bandwidth that two loops of our own reach in the same run, in turns with the step: one with the very streams
// of Adam and no arithmetic to speak of, and a plain copy.
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "model/unet/unet3d.h"
#include "parallel/shard/param_table.h"
#include "train/learn/registries.h"
#include "train/step/model_setup.h"

namespace welkin::bench {
namespace {

constexpr double kStepBytes = 28;  // per parameter
constexpr double kCopyBytes = 8;
constexpr int64_t kGrain = 1 << 16;

// Four float arrays of the size of all parameters.
struct Streams {
  std::vector<at::Tensor> arrays;

  explicit Streams(int64_t size) {
    for (int i = 0; i < 4; ++i) arrays.push_back(at::full({size}, 1.0F));
  }
  float* at(size_t i) const { return arrays.at(i).data_ptr<float>(); }
  int64_t size() const { return arrays.front().numel(); }
};

double seconds_of(const std::function<void()>& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

void like_adam(const Streams& streams) {
  at::parallel_for(0, streams.size(), kGrain, [&](int64_t begin, int64_t end) {
    float* __restrict weight = streams.at(0);
    float* __restrict average = streams.at(1);
    float* __restrict square = streams.at(2);
    const float* __restrict gradient = streams.at(3);
    for (int64_t i = begin; i < end; ++i) {
      const float g = gradient[i];
      average[i] += g;
      square[i] += g;
      weight[i] += g;
    }
  });
}

void plain_copy(const Streams& streams) {
  at::parallel_for(0, streams.size(), kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(streams.at(0) + begin, streams.at(3) + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

struct Series {
  std::vector<double> values;

  void add(double value) { values.push_back(value); }
  double median() const {
    std::vector<double> sorted = values;
    std::ranges::sort(sorted);
    return sorted.at(sorted.size() / 2);
  }
  double least() const { return *std::ranges::min_element(values); }
  double most() const { return *std::ranges::max_element(values); }
};

std::string spread(const char* name, const Series& series, double scale) {
  return cat("\"", name, "\": ", series.median() * scale, ", \"", name, "_min\": ", series.least() * scale, ", \"", name,
             "_max\": ", series.most() * scale);
}

struct Other {
  std::string name, state;
};

train::OptimizerPtr make_other(const Other& other, std::vector<train::OptimizerParameter> parameters) {
  train::Registries registries;
  train::add_builtins(registries);
  config::RunConfig config;
  config.optimizer.betas = {0.9, 0.999};
  config.optimizer.optimizer_state = config::choice_named<config::OptimizerState>(other.state).value();
  return registries.optimizers.at(other.name).make(config, std::move(parameters));
}

void run(int threads, int64_t rounds, int64_t width, const Other& other) {
  at::set_num_threads(threads);
  model::Unet3d model({.width = width});
  const auto table = parallel::ParamTable::of(model);
  const std::vector<train::OptimizerParameter> parameters = train::optimizer_parameters(table, train::Layout());
  for (const auto& parameter : parameters) {
    parameter.value.detach().fill_(0.02);
    parameter.value.mutable_grad() = at::full_like(parameter.value, 1e-3).detach();
  }
  config::RunConfig config;
  config.optimizer.betas = {0.9, 0.999};
  const auto optimizer = train::adam(config, parameters);
  const auto compared = other.name.empty() ? nullptr : make_other(other, parameters);
  const train::StepInputs inputs{.rate = at::full({}, 1e-4, at::kDouble), .found_inf = at::zeros({}, at::kFloat)};
  const int64_t count = table.num_parameters();
  const Streams streams(count);

  Series step, others, triad, copy, ratio;
  for (int64_t round = -1; round < rounds; ++round) {  // the first one is the warm-up
    const double step_s = seconds_of([&] { optimizer->step(inputs); });
    const double other_s = compared ? seconds_of([&] { compared->step(inputs); }) : 0;
    const double triad_s = seconds_of([&] { like_adam(streams); });
    const double copy_s = seconds_of([&] { plain_copy(streams); });
    if (round < 0) continue;
    step.add(step_s);
    others.add(other_s);
    triad.add(static_cast<double>(count) * kStepBytes / triad_s);
    copy.add(static_cast<double>(count) * kCopyBytes / copy_s);
  }
  const double bandwidth = std::max(triad.most(), copy.most());
  const double floor_s = static_cast<double>(count) * kStepBytes / bandwidth;
  for (const double value : step.values) ratio.add(value / floor_s);
  std::cout << "{\"parameters\": " << count << ", \"threads\": " << threads << ", " << spread("optimizer_ms", step, 1e3)
            << ", \"floor_ms\": " << floor_s * 1e3 << ", " << spread("optimizer_per_floor", ratio, 1) << ", "
            << spread("adam_streams_bytes_per_s", triad, 1) << ", " << spread("copy_bytes_per_s", copy, 1);
  if (compared) std::cout << ", \"other\": \"" << other.name << " " << other.state << "\", " << spread("other_ms", others, 1e3);
  std::cout << "}\n";
}

}  // namespace
}  // namespace welkin::bench

int main(int argc, char** argv) {
  const auto text = [&](int i, const char* otherwise) { return std::string(i < argc ? argv[i] : otherwise); };
  const auto number = [&](int i, int64_t otherwise) { return i < argc ? std::strtoll(argv[i], nullptr, 10) : otherwise; };
  try {
    welkin::bench::run(static_cast<int>(number(1, at::get_num_threads())), number(2, 7), number(3, 64),
                       {text(4, ""), text(5, "fp32")});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
