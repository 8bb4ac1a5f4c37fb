// SPDX-License-Identifier: Apache-2.0
// Steps of a configuration, measured: SYNTHETIC steps over one batch that needs no data file, FULL feeds them through the data
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
  int64_t activations = 0;  // what the peak holds besides: activations, workspaces; on a CPU the libraries' code too
  int64_t buffers = 0;      // batches in the loader, already there before the model
  int64_t resident_before_model = 0, resident_peak = 0;  // on the host
  int64_t device_before_model = 0, device_peak = 0;      // of tensors on a GPU; 0 on a CPU

  int64_t tensors_peak = 0;  // on the device while steps were timed, buffers with it; of a CPU where memory is counted, else 0

  // Above what was there before the model, where the model is.
  int64_t peak() const { return device_peak > 0 ? device_peak - device_before_model : resident_peak - resident_before_model; }
  // Activations are the peak minus the named parts: autograd and the libraries keep no list of their allocations.
  void find_activations() { activations = std::max<int64_t>(0, peak() - weights - gradients - optimizer); }
};

struct StepReport {
  StepMode mode = StepMode::Synthetic;
  Rates rates;                // samples per second of all ranks together
  std::vector<Phase> phases;  // seconds per step, of this rank
  MemoryByKind memory;
  model::ModelCost cost;             // of a sample
  int64_t parameters = 0;            // that this rank holds
  int64_t batch_samples = 0;         // of a step on this rank
  int64_t sample_bytes = 0;          // input and target
  int64_t exchanged_bytes = 0;       // gradients that this rank sends in a step
  Traffic traffic;                   // of this rank in the windows; of nocomm nothing
  double step_seconds = 0;           // of this rank, from the median rate
  double page_faults_per_step = 0;   // fresh memory, after the warm-up: what is used again takes none
  std::vector<LayerSeconds> layers;  // per step, where they were timed
  double start_seconds = 0;          // from the start of the process to the end of the first step
  std::vector<std::string> notes;    // what was chosen by measurement
  std::optional<train::PredictedStep> predicted;
  double first_step_seconds = 0;  // from before the model was built to the end of the first step
};

class LayerTimer;  // layers.h

struct StepBenchContext {
  const train::Registries& registries;
  const parallel::World& world;
  c10::Device device = c10::kCPU;
  WindowOptions windows{};
  LayerTimer* layers = nullptr;  // installed in the model, where it is given
};

// Every rank of the world calls it. `config` is resolved and torch is configured by it. Full opens the configuration's training
// data; the others open no file.
StepReport run_step_bench(const config::RunConfig& config, StepMode mode, const StepBenchContext& context);

}  // namespace welkin::bench
