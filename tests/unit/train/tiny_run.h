// SPDX-License-Identifier: Apache-2.0
// A whole training run of a few kilobytes, without files but its own folder: a small ViT on fields that are functions of their
// index.
#pragma once

#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "config/resolve/resolve.h"
#include "core/file.h"
#include "parallel/comm/world.h"
#include "scratch_folder.h"
#include "train/run/trainer.h"

namespace welkin::train {

// What the data set does besides giving samples.
struct TinyData {
  int64_t samples = 20, validation_samples = 6;
  int64_t bad_index = -1;                                      // this training sample's input is NaN
  int64_t interrupt_at = std::numeric_limits<int64_t>::max();  // the training read that raises SIGTERM, from 1
  std::chrono::milliseconds read_time{0};                      // of a training sample
  mutable std::atomic<int64_t> training_reads = 0;
};

class TinyFields : public data::Dataset {
 public:
  TinyFields(const TinyData& tiny, bool is_training) : tiny_(tiny), is_training_(is_training) {
    spec_.input = spec_.target = {{"u", "v"}, {"m s-1", "m s-1"}, {2, 8, 8}};
    spec_.geometry = data::Geometry::Sphere;
  }
  int64_t size() const override { return is_training_ ? tiny_.samples : tiny_.validation_samples; }
  const data::SampleSpec& spec() const override { return spec_; }
  data::SamplePlan plan(data::SampleKey key, const data::Region& wanted) const override {
    data::SamplePlan plan;
    plan.index = key.index;
    plan.region = wanted;
    return plan;
  }
  std::optional<int64_t> following(int64_t index) const override {
    return index + 1 < size() ? std::optional(index + 1) : std::nullopt;
  }
  void read(const data::SamplePlan& plan, data::SampleView out) const override {
    if (is_training_ && ++tiny_.training_reads == tiny_.interrupt_at) std::raise(SIGTERM);
    if (is_training_ && tiny_.read_time.count() > 0) std::this_thread::sleep_for(tiny_.read_time);
    const auto phase = static_cast<float>(plan.index) * 0.37f;
    for (size_t i = 0; i < out.input.size(); ++i) out.input[i] = std::sin(0.5f * static_cast<float>(i) + phase);
    for (size_t i = 0; i < out.target.size(); ++i) out.target[i] = std::cos(0.5f * static_cast<float>(i) + phase);
    if (is_training_ && plan.index == tiny_.bad_index && !out.input.empty())
      out.input[3] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  const TinyData& tiny_;
  bool is_training_;
  data::SampleSpec spec_;
};

inline config::RunConfig tiny_config(const std::filesystem::path& root) {
  config::RunConfig config;
  config.model.model = "vit";
  config.model.embed_dim = 16;
  config.model.depth = 2;
  config.model.num_heads = 2;
  config.model.patch_size = 4;
  config.model.dropout = 0.1;
  config.model.img_size = {8, 8};
  config.model.n_in_channels = config.model.n_out_channels = 2;
  config.data.dataset = "tiny";
  config.loss.loss = "relative_l2";
  config.optimizer.betas = {0.9, 0.95};
  config.optimizer.lr = config.schedule.start_lr = 1e-3;
  config.schedule.schedule = "cosine";
  config.loop.global_batch_size = 4;
  config.loop.base_batch_size = 4;
  config.loop.num_iters = 13;
  config.loop.seed = 11;
  config.loop.device = config::DeviceChoice::Cpu;
  config.loop.threads = 1;
  config.output.expdir = root.string();
  config.output.folder_rule = config::FolderRule::Gpu;
  return config;
}

struct TinyOutcome {
  RunOutcome run;
  std::string log;  // out.log
};

// How a run is looked at.
struct TinyObserver {
  ProfileOptions profile = {};
  observe::SpanSink* span_recorder = nullptr;
  FaultInjector* faults = nullptr;
};

// Runs, and returns what the log file says; errors of the run pass through.
inline TinyOutcome run_with(const config::RunConfig& config, const Registries& registries, const TinyObserver& observer = {}) {
  config::Resolved resolved;
  resolved.config = config;
  const ScratchFolder screen;
  const FileDescriptor file = open_file(screen / "screen", O_WRONLY | O_CREAT);
  observe::Console console({.fd = file.get(), .terminal = false});
  observe::RunLog log(console);
  const InterruptWatch interrupt;
  const parallel::World world;  // one process
  Trainer trainer({.resolved = resolved,
                   .registries = registries,
                   .console = console,
                   .log = log,
                   .interrupt = interrupt,
                   .world = world,
                   .resume_command = "welkin train --resume",
                   .profile = observer.profile,
                   .span_recorder = observer.span_recorder,
                   .faults = observer.faults});
  TinyOutcome outcome{.run = trainer.run(), .log = {}};
  outcome.log = read_file(outcome.run.folder / "out.log", 1 << 24);
  return outcome;
}

inline TinyOutcome run_tiny(const config::RunConfig& config, const TinyData& data, const TinyObserver& observer = {}) {
  Registries registries;
  add_builtins(registries);
  const auto open = [&data](const config::RunConfig&, data::Split split) {
    return std::make_unique<TinyFields>(data, split == data::Split::Train);
  };
  registries.datasets.add("tiny", {.open = open, .drops_last = true});
  return run_with(config, registries, observer);
}

}  // namespace welkin::train
