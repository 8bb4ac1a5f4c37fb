// SPDX-License-Identifier: Apache-2.0
#include "train/step/micro_batch.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "config/schema/batch_plan.h"
#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/device/device_memory.h"
#include "train/recompute/activation_checkpointing.h"
#include "train/rollout/curriculum.h"
#include "train/step/probe_steps.h"

namespace welkin::train {
namespace {

std::string room_text(int64_t bytes) { return format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, bytes))); }

// A memory limit on the CPU for a probe, so that it ends with an error and not with the process.
class ProbeLimit {
 public:
  ProbeLimit(c10::Device device, int64_t bytes) : before_(cpu_memory_limit()) {
    if (device.is_cpu()) limit_cpu_memory(bytes);
  }
  ~ProbeLimit() { limit_cpu_memory(before_); }
  ProbeLimit(const ProbeLimit&) = delete;
  ProbeLimit& operator=(const ProbeLimit&) = delete;

 private:
  int64_t before_;
};

struct MicroBatchCost {
  int64_t fixed = 0, per_sample = 0;
  int64_t of(int64_t samples) const { return fixed + samples * per_sample; }
};

[[noreturn]] void refuse_all(const MicroBatchQuestion& question, const std::string& needed) {
  throw ConfigError("micro_batch_size",
                    cat("not even one sample a forward pass fits into memory: needed=", needed,
                        ", limit=", room_text(question.room.bytes), " (", question.room.source, ")"),
                    "Raise --memory_limit_gib, or try --activation_checkpointing blocks, --amp_mode bf16 or a smaller model");
}

MicroBatchCost cost_of_samples(const MicroBatchQuestion& question) {
  const std::optional<int64_t> one = question.step_peak(1);
  if (!one) refuse_all(question, "more than there is");
  const std::optional<int64_t> two = question.local_batch > 1 ? question.step_peak(2) : one;
  std::vector<double> costs{static_cast<double>(*one), static_cast<double>(std::max<int64_t>(0, two.value_or(2 * *one) - *one))};
  question.agree(costs);
  const auto more = static_cast<int64_t>(costs[1]);
  return {.fixed = static_cast<int64_t>(costs[0]) - more, .per_sample = more + question.buffer_bytes};
}

bool is_fitting(const MicroBatchQuestion& question, const MicroBatchCost& cost, int64_t samples) {
  if (cost.of(samples) > question.room.bytes) return false;
  if (!question.is_tried) return true;
  const std::optional<int64_t> peak = question.step_peak(samples);
  return peak && *peak + samples * question.buffer_bytes <= question.room.bytes;
}

int64_t next_larger_divisor(int64_t number, int64_t divisor) {
  while (number % ++divisor != 0) {
  }
  return divisor;
}

std::string reason(const MicroBatchQuestion& question, const MicroBatchCost& cost, int64_t samples) {
  const int64_t local = question.local_batch;
  std::string text = cat("micro_batch_size auto: ", samples, " of ", local, " samples a forward pass, predicted ",
                         room_text(cost.of(samples)), " of ", room_text(question.room.bytes), " (", question.room.source, "); ",
                         room_text(cost.fixed), " and ", room_text(cost.per_sample), " a sample");
  if (samples == local) return text;
  const int64_t larger = next_larger_divisor(local, samples);
  return cat(text, ", so ", larger, " would take ", room_text(cost.of(larger)));
}

// A configuration with two forward passes, so that the second adds to the gradients of the first.
config::RunConfig config_for(const config::RunConfig& config, int64_t replicas, int64_t samples) {
  config::RunConfig own = config;
  own.loop.micro_batch_size = samples;
  own.loop.global_batch_size = 2 * samples * replicas;
  return own;
}

int64_t peak_of_step(const Layout& layout, const SetupSource& source, int64_t samples) {
  const config::RunConfig config = config_for(source.config, layout.replicas.size(), samples);
  const SetupSource own{config, source.registries, source.spec, source.device, source.world_group};
  ProbeSteps steps(layout, own, {.total_steps = 16, .steps_per_epoch = 16, .samples = config.loop.global_batch_size},
                   [&](model::Model& model, const parallel::ParamTable& table) { checkpoint_activations(model, table, config); });
  steps.run();
  reset_peak_memory(source.device);
  steps.run();
  return max_memory_allocated(source.device) - steps.extra_bytes();
}

// Bytes of the loaders for training and validation, as many buffers as each has (data/pipeline/pipeline.cpp).
int64_t buffer_bytes_of(const SetupSource& source) {
  constexpr int64_t kLoaders = 2, kHeld = 2;
  int64_t values = 0;
  const data::SampleSpec longest = longest_sample(source.config, source.spec);
  for (const data::ArraySpec* spec : {&longest.input, &longest.target}) {
    int64_t count = 1;
    for (const int64_t size : spec->shape) count *= size;
    values += count;
  }
  return kLoaders * (source.config.data.prefetch_depth + kHeld) * values * static_cast<int64_t>(sizeof(float));
}

}  // namespace

MicroBatchChoice choose_micro_batch(const MicroBatchQuestion& question) {
  const MicroBatchCost cost = cost_of_samples(question);
  for (int64_t samples = question.local_batch; samples > 0; --samples) {
    if (question.local_batch % samples != 0 || !is_fitting(question, cost, samples)) continue;
    return {.samples = samples, .note = reason(question, cost, samples)};
  }
  refuse_all(question, room_text(cost.of(1)));
}

MemoryRoom memory_room(c10::Device device, int64_t processes) {
  constexpr double kShare = 0.9;  // the rest is for memory other than tensors
  if (const double limit = memory_limit_gib(device); limit > 0) return {bytes_of_limit(limit), "memory_limit_gib"};
  if (!device.is_cpu()) {
    const DeviceMemoryState state = device_memory_state(device.index());
    return {static_cast<int64_t>(kShare * static_cast<double>(state.allocated + state.cached + state.free)), "the GPU's"};
  }
  const uint64_t available = available_memory();
  if (available == 0) {
    throw ConfigError("micro_batch_size", "the system does not say how much memory is left: micro_batch_size=auto",
                      "Give --memory_limit_gib, or a number of samples");
  }
  return {cpu_memory_allocated() + static_cast<int64_t>(kShare * static_cast<double>(available) / static_cast<double>(processes)),
          "nine tenths of what the machine has left"};
}

MicroBatchChoice choose_micro_batch(const Layout& layout, const SetupSource& source, int64_t processes) {
  if (source.device.is_cpu()) count_cpu_memory();
  MicroBatchQuestion question{.local_batch = config::batch_plan(source.config, layout.replicas.size()).local,
                              .buffer_bytes = buffer_bytes_of(source),
                              .room = memory_room(source.device, processes),
                              .is_tried = source.world_group.size() == 1};  // else one rank's error leaves the others waiting
  question.agree = [&](std::vector<double>& values) {
    if (source.world_group.size() == 1) return;
    values.push_back(-static_cast<double>(question.room.bytes));
    const at::Tensor own = at::tensor(values, at::kDouble).to(source.device);
    const at::Tensor most = parallel::all_reduce(source.world_group, own, parallel::Reduction::Max).cpu();
    values.assign(most.const_data_ptr<double>(), most.const_data_ptr<double>() + most.numel());
    question.room.bytes = static_cast<int64_t>(-values.back());
  };
  question.step_peak = [&](int64_t samples) -> std::optional<int64_t> {
    const ProbeLimit limit(source.device, question.room.bytes);
    try {
      return peak_of_step(layout, source, samples);
    } catch (const std::exception&) {
      if (!memory_error_if_any(question.room.bytes) || source.world_group.size() > 1) throw;
      return std::nullopt;
    }
  };
  return choose_micro_batch(question);
}

}  // namespace welkin::train
