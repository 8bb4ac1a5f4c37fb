// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_report.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "core/process/host.h"
#include "core/text.h"
#include "model/base/describe.h"
#include "parallel/comm/collectives.h"
#include "train/device/device_memory.h"
#include "train/device/kernel_choice.h"
#include "train/device/throughput.h"
#include "train/learn/channel_weights.h"
#include "train/rollout/curriculum.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

// The time to measure the peak that a run reports against: at most a fiftieth of the epoch's time.
double seconds_for_peak(double epoch_seconds) {
  constexpr double kShare = 0.02, kMostSeconds = 0.3;
  return std::min(kMostSeconds, kShare * epoch_seconds);
}

// Earlier files have the scalars of this step already, unless the epoch's end is still to be done.
std::optional<int64_t> void_from(const RunState& state) {
  if (!state.resumed) return {};
  return state.position.iteration + (state.epoch_is_complete() ? 0 : 1);
}

double peak_memory_gib(c10::Device device) {
  constexpr double kGib = int64_t{1} << 30;
  const auto bytes =
      device.is_cpu() ? static_cast<double>(peak_resident_bytes()) : static_cast<double>(max_memory_allocated(device));
  return bytes / kGib;
}

const char* dtype_name(config::AmpMode mode) {
  if (mode == config::AmpMode::None) return "fp32";
  return mode == config::AmpMode::Bf16 ? "bf16" : "fp16";
}

// A GPU has no name here: its peak is measured at each start.
bool keeps_peak(const TrainerContext& context, c10::Device device) { return device.is_cpu() && !context.peak_file.empty(); }

PeakSource peak_source(const TrainerContext& context, c10::Device device) {
  const config::RunConfig& config = context.resolved.config;
  const KernelChoice kernels = kernel_choice(config, context.registries.models.at(config.model.model), device);
  const auto kernel = [&](const char* name) { return kernels.contains(name) ? kernels.at(name) : std::string(); };
  PeakConditions conditions{.processor = processor_name(),
                            .instruction_set = kernel("kernels.instruction_set"),
                            .gemm = kernel("kernels.gemm"),
                            .dtype = dtype_name(config.precision.amp_mode),
                            .threads = at::get_num_threads()};
  return {keeps_peak(context, device) ? std::optional<PeakCache>(context.peak_file) : std::nullopt, std::move(conditions),
          context.measure_peak,
          [=, mode = config.precision.amp_mode](double seconds) { return measure_peak_flops(device, mode, seconds); },
          [&log = context.log](const std::string& note) { log.info(note); }};
}

}  // namespace

RunReport::RunReport(const TrainerContext& context, const TrainSetup& setup, const RunData& data, const RunState& state,
                     c10::Device device, const ScalarFiles& files)
    : context_(context),
      config_(context.resolved.config),
      setup_(setup),
      data_(data),
      state_(state),
      device_(device),
      metric_logger_(context.log, config_, data.train().spec(), files, void_from(state)),
      peak_(peak_source(context, device)),
      step_log_(context.world.is_main() ? config_.output.log_every_n_steps : 0) {}

void RunReport::setup() {
  model();
  ranks();
  if (setup_.layout.plan) context_.log.info(scaffolding_memory_line(device_));
  context_.log.info(kernels_line(kernel_choice(config_, context_.registries.models.at(config_.model.model), device_)));
}

void RunReport::model() {
  const auto members = static_cast<double>(ensemble_members(config_, data_.train().spec()));
  train_flops_ = members * cost_of(context_.registries, config_, data_.train().spec()).train_flops;
  if (config_.model.model != "unet3d") context_.log.info(model::describe(*setup_.model));
  context_.log.info(cat("Model ", config_.model.model, ": ", setup_.table.num_parameters(), " parameters, seed ",
                        config_.loop.seed, ", device ", device_.str(), ", ", data_.samples().size(), " training and ",
                        data_.valid().size(), " validation samples"));
  loss_weights();
}

void RunReport::loss_weights() {
  const std::vector<std::string>& channels = data_.train().spec().target.channels;
  const std::vector<double> weights = channel_weights(config_.loss, channels);
  if (weights.empty()) return;
  std::vector<std::string> words;
  for (size_t c = 0; c < weights.size(); ++c) words.push_back(cat(channels[c], "=", weights[c]));
  context_.log.info(cat("Weights of channels in the loss: ", join(words, ", ")));
}

// The buckets are the planned ones: after the first step they are rebuilt in the order in which gradients came.
void RunReport::ranks() {
  if (context_.world.size() == 1) return;
  const Layout& layout = setup_.layout;
  context_.log.info(cat("Ranks: ", context_.world.size(), " on ", context_.world.rank_info().num_nodes, " node(s) from ",
                        context_.world.rank_info().launcher, ", data parallel ", layout.replicas.size(), ", local batch ",
                        config_.loop.local_batch_size.value_or(0), ", collectives of host memory over ",
                        context_.world.carrier()));
  if (const std::string open = context_.world.open_to_strangers_text(); !open.empty()) context_.log.warning(open);
  if (layout.plan) context_.log.info(cat("Groups of ranks:\n", layout.groups.text()));
  if (!layout.context_note.empty()) context_.log.info(layout.context_note);
  if (!layout.stages.empty()) context_.log.info(cat("Blocks of the pipeline's stages: ", parallel::text_of(layout.stages)));
  if (layout.plan && !layout.plan->note.empty()) context_.log.info(layout.plan->note);
  if (config_.parallel.noddp) return context_.log.info("Gradients are not exchanged (noddp)");
  if (setup_.unit_sum) return context_.log.info("Gradients of eighths of the batch are summed in a fixed tree (rank_invariant)");
  if (setup_.is_sharded()) {
    const parallel::ShardGroups& sharding = setup_.layout.sharding;
    return context_.log.info(cat("Gradients are shared out over ", sharding.shards.size(), " ranks",
                                 sharding.replicas.size() > 1 ? cat(" in ", sharding.replicas.size(), " groups") : "", ", in ",
                                 parallel::describe(setup_.data_parallel->buckets())));
  }
  context_.log.info(cat("Gradients are exchanged in ", parallel::describe(setup_.data_parallel->buckets())));
}

void RunReport::initial(double train_loss, const ValidationReport& valid) {
  EpochReport train;
  train.loss = train_loss;
  metric_logger_.initial(train, valid);
}

void RunReport::add_step(const StepRecord& record) {
  ++steps_;
  samples_ += record.num_samples;
  model_steps_ += record.num_samples * data_.steps();
  step_log_.count(record.num_samples);
  if (!step_log_.is_due(record.iteration)) return;
  const auto loss = record.loss.item<double>();
  const int64_t epoch = state_.position.epoch + 1;
  const StepReport report{
      .loss = loss, .gradient_norm = record.gradient.norm.item<double>(), .memory_gib = peak_memory_gib(device_)};
  metric_logger_.step(step_log_.line(record.iteration, epoch, state_.length, loss, record.rate.item<double>()), report,
                      record.iteration, epoch);
}

void RunReport::begin_epoch() {
  seconds_ = 0;
  steps_ = samples_ = model_steps_ = 0;
}

void RunReport::epoch(const EpochMeter& meter) {
  metric_logger_.epoch({.epoch = state_.position.epoch + 1,
                        .iterations = state_.position.iteration,
                        .steps = steps_,
                        .samples = samples_,
                        .seconds = seconds_,
                        .loss = meter.mean_loss(),
                        .last_lr = state_.last_lr.item<double>(),
                        .next_lr = setup_.lr_table->current().item<double>(),
                        .skipped = meter.skipped_steps(),
                        .throughput = throughput()});
  if (state_.picture) metric_logger_.picture(*state_.picture, state_.position.iteration);
}

// If no peak is kept, every rank measures at the same time, since all compute at the same time.
std::string RunReport::throughput() {
  if (train_flops_ <= 0 || seconds_ <= 0) return {};
  if (keeps_peak(context_, device_) && !context_.world.is_main()) return {};
  const double model_flops = train_flops_ * static_cast<double>(model_steps_) / seconds_;
  const auto ranks = static_cast<double>(context_.world.size());
  const double peak = ranks * peak_.flops(model_flops / ranks, seconds_for_peak(seconds_));
  return throughput_text(model_flops, peak, peak_.origin());
}

void RunReport::flush() {
  metric_logger_.flush();
  if (const std::string strangers = context_.world.strangers_text(); !strangers.empty()) context_.log.warning(strangers);
}

void RunReport::finish() {
  flush();
  if (const std::string traffic = context_.world.traffic_text(); !traffic.empty()) {
    context_.log.info(cat("Communication of rank 0:\n", traffic));
  }
}

bool RunReport::logs_this_step() const { return setup_.layout.plan && state_.position.step_in_epoch == 1; }

// The tutorials show the last training batch's first sample; only the epoch's last step is worth the copy.
bool RunReport::draws_this_step() const { return state_.is_last_step_of_epoch() && metric_logger_.draws_pictures(); }

std::optional<ForecastPair> RunReport::on_forward(const data::Batch& batch, const at::Tensor& prediction) {
  if (batch.micro != 0) return {};
  std::optional<ForecastPair> picture;
  if (draws_this_step()) {
    const auto whole = [&](const at::Tensor& samples) {
      const at::Tensor channel = samples.select(0, 0).narrow(0, metric_logger_.picture_channel(), 1);
      return plane_of(setup_.layout.shard.whole_fields(channel.contiguous()), 0);
    };
    picture = ForecastPair{.target = whole(batch.target), .prediction = whole(prediction)};
  }
  if (logs_this_step()) context_.log.info(forward_pass_memory_line(device_));
  return picture;
}

namespace {

// Returns the last member's plane, (H, W), on all members.
at::Tensor plane_of_last(const parallel::Group& group, const at::Tensor& plane, int64_t rows, int64_t columns) {
  at::Tensor shared = plane.defined() ? plane : at::empty({rows, columns}, at::kFloat);
  parallel::broadcast(group, shared, group.size() - 1);
  return shared;
}

}  // namespace

void RunReport::share(std::optional<ForecastPair>& picture) const {
  if (!setup_.pipeline || !draws_this_step()) return;
  const parallel::Group& stages = setup_.layout.groups.along(parallel::Axis::Pp);
  const at::Tensor sizes = at::zeros({2}, at::kLong);
  if (picture) sizes.copy_(at::tensor(picture->target.sizes(), at::kLong));
  parallel::broadcast(stages, sizes, stages.size() - 1);
  const auto rows = sizes[0].item<int64_t>(), columns = sizes[1].item<int64_t>();
  if (rows == 0) return;  // the last stage had no samples in a short step
  if (!picture) picture.emplace();
  picture->target = plane_of_last(stages, picture->target, rows, columns);
  picture->prediction = plane_of_last(stages, picture->prediction, rows, columns);
}

}  // namespace welkin::train
