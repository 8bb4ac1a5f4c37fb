// SPDX-License-Identifier: Apache-2.0
#include "bench/step/step_bench.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "bench/step/layers.h"
#include "bench/step/synthetic_config.h"
#include "core/process/host.h"
#include "core/stopwatch.h"
#include "data/datasets/stage.h"
#include "data/pipeline/pipeline.h"
#include "data/sample/sequences.h"
#include "ops/base/large_blocks.h"
#include "parallel/comm/collectives.h"
#include "parallel/comm/fake_group.h"
#include "parallel/mesh/run_mesh.h"
#include "train/benchy/fixed_batches.h"
#include "train/device/device.h"
#include "train/device/device_memory.h"
#include "train/device/memory_limit.h"
#include "train/device/memory_report.h"
#include "train/rollout/curriculum.h"
#include "train/run/data_notes.h"
#include "train/run/nonfinite_watch.h"
#include "train/run/validation.h"
#include "train/step/micro_batch.h"
#include "train/step/model_setup.h"
#include "train/step/step.h"
#include "train/step/step_graph.h"

namespace welkin::bench {
namespace {

config::RunConfig configuration_for(const config::RunConfig& config, StepMode mode) {
  config::RunConfig own = mode == StepMode::Full ? config : synthetic_config(config);
  // Sharded exchanges run over groups that send nothing.
  if (mode == StepMode::NoComm && own.parallel.shard == config::ShardStage::None) own.parallel.noddp = true;
  return own;
}

int64_t values_in(const data::ArraySpec& spec) {
  int64_t count = 1;
  for (const int64_t size : spec.shape) count *= size;
  return count;
}

int64_t bytes_of(const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; }

// Resets the peak of peak_resident_bytes() where the kernel allows it (proc(5), clear_refs).
void forget_peak_resident_bytes() { std::ofstream("/proc/self/clear_refs") << "5" << std::flush; }

// Uses the kernel's clock (proc(5), stat, field 22), so that time before main counts too.
double seconds_since_process_start() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Data, model and step of one measurement.
class StepRig {
 public:
  StepRig(const config::RunConfig& config, StepMode mode, const StepBenchContext& context)
      : mode_(mode), config_(configuration_for(config, mode)), context_(context) {}

  StepReport measure() {
    try {
      run();
    } catch (const std::exception&) {
      throw train::explained(train::memory_error_in_flight(config_),
                             train::known_memory(setup_.get(), own_buffers_, fixed_ || pipeline_), config_);
    }
    return std::move(report_);
  }

 private:
  bool is_silent() const { return mode_ == StepMode::NoComm; }

  void run() {
    report_.mode = mode_;
    const int64_t before = train::cpu_memory_allocated();
    open(groups());
    own_buffers_ = context_.device.is_cpu() ? train::cpu_memory_allocated() - before : 0;
    build();
    first_step();
    run_windows();
    count_memory();
    time_exchange();
  }

  parallel::MeshGroups groups() const {
    const parallel::World& world = context_.world;
    if (!is_silent()) return train::make_mesh_groups(config_.parallel, world);
    return {parallel::fake_group, world.rank(), parallel::mesh_of(config_.parallel, world.size())};
  }

  void open(parallel::MeshGroups groups) {
    const train::DatasetEntry& entry = context_.registries.datasets.at(config_.data.dataset);
    if (mode_ == StepMode::Full)
      config_ = train::for_device(data::staged(config_, [](const std::string& /*line*/) {}), context_.device);
    dataset_ = entry.open(config_, data::Split::Train);
    spec_ = dataset_->spec();
    if (train::has_sequences(config_, spec_)) {
      steps_ = config_.loss.multistep.most();
      sequences_ = dataset_->of_steps(steps_, steps_);
    }
    const data::Dataset& samples = sequences_ ? *sequences_ : *dataset_;
    dataset_size_ = samples.size();
    report_.sample_bytes =
        (values_in(samples.spec().input) + values_in(samples.spec().target)) * static_cast<int64_t>(sizeof(float));
    layout_ = train::make_layout(std::move(groups), source());
    choose_micro_batch();
    data::PipelineOptions options =
        train::pipeline_options(config_, layout_.replicas, context_.device, /*drop_last=*/true, layout_.shard.region());
    options.agree = train::agreement_of(config_, layout_.groups);
    pipeline_ = std::make_unique<data::Pipeline>(samples, data::Sampler(dataset_size_, data::Order::Shuffled, config_.loop.seed),
                                                 std::move(options));
    // The learning rate does not matter, and schedules are clamped at their end.
    length_ = {.total_steps = 1024, .steps_per_epoch = pipeline_->steps_per_epoch(), .samples = dataset_size_};
    report_.memory.buffers = static_cast<int64_t>(pipeline_->buffer_bytes());
    if (mode_ == StepMode::Full) return;
    fixed_ = std::make_unique<train::FixedBatches>(*pipeline_);
    pipeline_.reset();
    sequences_.reset();
    dataset_.reset();
    report_.memory.buffers = 0;
  }

  void choose_micro_batch() {
    if (!config_.loop.micro_batch_size.is_auto) return;
    const train::MicroBatchChoice choice = train::choose_micro_batch(layout_, source(), context_.world.rank_info().local_size);
    config_.loop.micro_batch_size = choice.samples;
    report_.notes.push_back(choice.note);
  }

  train::SetupSource source() const {
    return {config_, context_.registries, spec_, context_.device, context_.world.world_group(), own_buffers_};
  }

  void build() {
    malloc_trim(0);  // returns memory that an earlier measurement has freed
    ops::trim_large_blocks();
    forget_peak_resident_bytes();
    report_.memory.resident_before_model = static_cast<int64_t>(resident_bytes());
    if (context_.device.is_cuda()) {
      at::globalContext().lazyInitDevice(at::kCUDA);  // the allocator does not exist before
      train::reset_peak_memory(context_.device.index());
      report_.memory.device_before_model = train::max_memory_allocated(context_.device.index());
    }
    since_build_.emplace();
    setup_ = train::make_setup(layout_, source(), length_);
    if (!setup_->checkpointing_note.empty()) report_.notes.push_back(setup_->checkpointing_note);
    report_.predicted = setup_->predicted;
    report_.cost = train::cost_of(context_.registries, config_, spec_);
    // The input of the first model step has no gradient; those of later steps do.
    report_.cost.train_flops += 3 * static_cast<double>(steps_ - 1) * report_.cost.forward_flops;
    report_.cost.train_flops *= static_cast<double>(train::ensemble_members(config_, spec_));
    time_layers();
    tracer_.add_sink(clock_);
    train::StepOptions options{.device = context_.device, .dataset_size = dataset_size_, .tracer = &tracer_};
    if (!is_silent()) options.world_group = context_.world.world_group();
    const bool waits_for_layers = context_.layers != nullptr;  // not possible in a recorded step
    if (!waits_for_layers) options.recorder = train::graph_recorder(config_, context_.device);
    step_ = train::make_step(*setup_, config_, std::move(options));
    report_.parameters = setup_->table.num_parameters();
    report_.exchanged_bytes = setup_->data_parallel->bytes_per_step();
  }

  void time_layers() {
    if (context_.layers == nullptr) return;
    std::vector<std::string> names;
    for (const model::LayerCost& layer : report_.cost.layers) names.push_back(layer.name);
    context_.layers->install(*setup_->model, names);
    tracer_.add_sink(*context_.layers);
  }

  void forget_warm_up() {
    clock_.clear();
    before_windows_ = context_.world.traffic();
    faults_before_ = page_faults();
    if (context_.device.is_cuda()) report_.memory.device_peak = train::max_memory_allocated(context_.device.index());
    train::reset_peak_memory(context_.device);
    if (context_.layers != nullptr) context_.layers->clear();
  }

  int64_t step_once() {
    const train::StepRecord record = step_->run([this] { return pipeline_ ? pipeline_->next() : fixed_->next(); });
    last_loss_ = record.loss;
    stay_near();
    return static_cast<int64_t>(record.samples.size());
  }

  // The host runs ahead of a GPU as far as in training, and no further. Recorded steps are launched in no time, and a waiting
  // step holds the memory of its batch.
  void stay_near() {
    if (!context_.device.is_cuda() || ++steps_ahead_ < train::NonFiniteWatch::kReadInterval) return;
    last_loss_.item<float>();
    steps_ahead_ = 0;
  }

  // Waits for the step. The loss depends on everything but the update; the weights depend on that.
  void settle() const {
    if (!context_.device.is_cuda()) return;
    last_loss_.item<float>();
    setup_->table.rows().front().trained().sum().item<float>();
  }

  void first_step() {
    report_.batch_samples = step_once();
    settle();
    report_.first_step_seconds = since_build_->seconds();
    report_.start_seconds = seconds_since_process_start();
  }

  // Measures this rank's samples per second, then all ranks': ranks that share a sample count it once.
  void run_windows() {
    Work work{.batch = [this] { return step_once(); },
              .settle = [this] { settle(); },
              .warmed_up = [this] { forget_warm_up(); },
              .rest = [this] { train::empty_cache(context_.device); }};
    const parallel::Group& world_group = context_.world.world_group();
    if (world_group.size() > 1) {
      work.agree = [&](int64_t wanted) {
        const at::Tensor most = parallel::all_reduce(world_group, at::full({1}, wanted, at::kLong), parallel::Reduction::Max);
        return most.item<int64_t>();
      };
    }
    report_.rates = measure_rates(context_.windows, work);
    report_.phases = clock_.per_step(report_.rates.batches);
    report_.page_faults_per_step =
        static_cast<double>(page_faults() - faults_before_) / static_cast<double>(report_.rates.batches);
    report_.step_seconds = static_cast<double>(report_.batch_samples) / report_.rates.median();
    report_.traffic.calls = calls_since(before_windows_, context_.world.traffic());
    report_.traffic.steps = report_.rates.batches;
    if (context_.layers != nullptr) report_.layers = context_.layers->per_step(report_.rates.batches);
    const auto sharers = static_cast<double>(world_group.size() / layout_.replicas.size());
    const at::Tensor own = at::tensor(report_.rates.windows, at::kDouble).div(sharers);
    const at::Tensor sums = parallel::all_reduce(world_group, own);
    report_.rates.windows.assign(sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel());
  }

  void time_exchange() {
    if (report_.exchanged_bytes == 0) return;
    const bool travels_narrow = config_.parallel.compress_gradients != config::GradientDtype::Same;
    const auto travels = at::TensorOptions(travels_narrow ? at::kBFloat16 : at::kFloat).device(context_.device);
    if (setup_->is_sharded()) {
      time_sharded_calls(report_.traffic, *setup_->data_parallel, layout_.sharding.shards, travels);
    } else {
      report_.traffic.exchange_alone_s = seconds_of_exchange_alone(*setup_->data_parallel, layout_.exchange, travels);
    }
  }

  void count_memory() {
    MemoryByKind& memory = report_.memory;
    memory.resident_peak = static_cast<int64_t>(peak_resident_bytes());
    memory.tensors_peak = train::max_memory_allocated(context_.device);
    if (context_.device.is_cuda()) memory.device_peak = std::max(memory.device_peak, memory.tensors_peak);
    for (const parallel::ParamRow& row : setup_->table.rows()) {
      memory.weights += row.held_bytes();
      if (row.local.requires_grad()) memory.gradients += bytes_of(row.trained());
    }
    for (const train::NamedState& state : setup_->optimizer->states()) memory.optimizer += state.held_bytes();
    memory.find_activations();
  }

  StepMode mode_;
  config::RunConfig config_;
  const StepBenchContext& context_;
  StepReport report_;
  train::Layout layout_;
  std::unique_ptr<train::TrainSetup> setup_;
  data::SampleSpec spec_;
  train::RunLength length_;
  int64_t dataset_size_ = 0;
  int64_t own_buffers_ = 0;  // bytes of batches, if memory is counted
  std::unique_ptr<data::Dataset> dataset_;
  std::unique_ptr<data::Dataset> sequences_;  // samples of several model steps
  int64_t steps_ = 1;                         // model steps per sample
  std::unique_ptr<data::Pipeline> pipeline_;
  std::unique_ptr<train::FixedBatches> fixed_;
  PhaseClock clock_;
  std::vector<parallel::CallTotal> before_windows_;
  uint64_t faults_before_ = 0;
  observe::Tracer tracer_;
  std::unique_ptr<train::Step> step_;
  size_t steps_ahead_ = 0;  // most steps that the host is ahead of the device
  std::optional<Stopwatch> since_build_;
  at::Tensor last_loss_;
};

}  // namespace

const char* step_mode_name(StepMode mode) {
  switch (mode) {
    case StepMode::Synthetic:
      return "synthetic";
    case StepMode::Full:
      return "full";
    default:
      return "nocomm";
  }
}

StepReport run_step_bench(const config::RunConfig& config, StepMode mode, const StepBenchContext& context) {
  return StepRig(config, mode, context).measure();
}

}  // namespace welkin::bench
