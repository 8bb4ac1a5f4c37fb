// SPDX-License-Identifier: Apache-2.0
// Measures steps of a configuration: SYNTHETIC repeats one batch and needs no data file, FULL feeds steps through the data
// pipeline, NOCOMM is SYNTHETIC with collectives that send nothing. The step is the trainer's own (train/step/step.h).
#pragma once

#include <c10/core/Device.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/step/phases.h"
#include "bench/step/rates.h"
#include "bench/step/traffic.h"
#include "config/schema/run_config.h"
#include "model/base/model_cost.h"
#include "parallel/comm/world.h"
#include "train/learn/registries.h"
#include "train/step/setup.h"

namespace welkin::bench {

enum class StepMode { Synthetic, Full, NoComm };
const char* step_mode_name(StepMode mode);  // "synthetic", "full", "nocomm"

// Bytes of this process.
struct MemoryByKind {
  int64_t weights = 0, gradients = 0, optimizer = 0;
  int64_t activations = 0;  // the rest of the peak: activations, workspaces; on a CPU the libraries' code too
  int64_t buffers = 0;      // batches in the loader, already there before the model
  int64_t resident_before_model = 0, resident_peak = 0;  // on the host
  int64_t device_before_model = 0, device_peak = 0;      // of tensors on a GPU; 0 on a CPU

  int64_t tensors_peak = 0;  // peak during timed steps, with buffers, on the device; on a CPU only if memory is counted, else 0

  // Above the level before the model, on the model's device.
  int64_t peak() const { return device_peak > 0 ? device_peak - device_before_model : resident_peak - resident_before_model; }
  // Activations are the peak minus the named parts: autograd and the libraries do not list their allocations.
  void find_activations() { activations = std::max<int64_t>(0, peak() - weights - gradients - optimizer); }
};

struct StepReport {
  StepMode mode = StepMode::Synthetic;
  Rates rates;                // samples per second of all ranks together
  std::vector<Phase> phases;  // seconds per step, of this rank
  MemoryByKind memory;
  model::ModelCost cost;             // per sample
  int64_t parameters = 0;            // that this rank holds
  int64_t batch_samples = 0;         // per step on this rank
  int64_t sample_bytes = 0;          // input and target
  int64_t exchanged_bytes = 0;       // gradients that this rank sends in a step
  Traffic traffic;                   // of this rank in the windows; empty for nocomm
  double step_seconds = 0;           // of this rank, from the median rate
  double page_faults_per_step = 0;   // newly mapped memory, after the warm-up: reused memory causes none
  std::vector<LayerSeconds> layers;  // per step, if they were timed
  double start_seconds = 0;          // from the start of the process to the end of the first step
  std::vector<std::string> notes;    // choices made by measurement
  std::optional<train::PredictedStep> predicted;
  double first_step_seconds = 0;  // from before the model was built to the end of the first step
};

class LayerTimer;  // layers.h

struct StepBenchContext {
  const train::Registries& registries;
  const parallel::World& world;
  c10::Device device = c10::kCPU;
  WindowOptions windows{};
  LayerTimer* layers = nullptr;  // if given, it is installed in the model
};

// Every rank of the world calls it. `config` is resolved, and torch is configured by it. FULL opens the configured training
// data; the other modes open no file.
StepReport run_step_bench(const config::RunConfig& config, StepMode mode, const StepBenchContext& context);

}  // namespace welkin::bench
