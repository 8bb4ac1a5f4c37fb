// SPDX-License-Identifier: Apache-2.0
// `welkin bench --mode io`: samples per second that the data pipeline alone delivers to the device, with the configuration's
// own data set, batch, threads and prefetch. No model is built.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/step/rates.h"
#include "config/schema/run_config.h"
#include "data/sample/dataset.h"
#include "parallel/comm/group.h"

namespace welkin::bench {

struct IoReport {
  Rates rates;
  int64_t sample_bytes = 0;          // input and target, as delivered
  int64_t batch_samples = 0;         // largest batch
  double open_ms = 0;                // opening the data set
  double first_batch_ms = 0;         // from before opening to the first batch on the device
  uint64_t buffer_bytes = 0;         // host buffers of the ring
  uint64_t held_bytes = 0;           // values held on the device (resident)
  uint64_t requested_bytes = 0;      // read from files during warm-up and windows
  uint64_t delivered_bytes = 0;      // of the samples for which they were read
  uint64_t peak_resident_bytes = 0;  // of the process
  double page_faults_per_batch = 0;  // after the first round of the ring, when each buffer's memory is mapped
  int64_t num_workers = 0, num_batches = 0;
};

// `open` makes the training data set. Samples are shuffled as in training. The ranks of `replicas` share the batches, and each
// reports its own rate.
IoReport run_io_bench(const config::RunConfig& config, const std::function<std::unique_ptr<data::Dataset>()>& open,
                      const parallel::Group& replicas, c10::Device device, const WindowOptions& options);

std::string io_text(const IoReport& report);
// Adds `io_samples_per_s`, `io_samples_per_s_spread`, `_min`, `_max`, `_windows`, and the figures of the report.
void add_io_json(nlohmann::ordered_json& json, const IoReport& report);

}  // namespace welkin::bench
