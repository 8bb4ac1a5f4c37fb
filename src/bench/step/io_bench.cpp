// SPDX-License-Identifier: Apache-2.0
#include "bench/step/io_bench.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "core/process/host.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "data/pipeline/pipeline.h"
#include "train/run/validation.h"

namespace welkin::bench {
namespace {

int64_t values_of_sample(const data::ArraySpec& spec) {
  int64_t count = 1;
  for (const int64_t size : spec.shape) count *= size;
  return count;
}

// Waits for the device's stream by reading an element.
void wait_for(const at::Tensor& values) {
  if (values.defined() && values.is_cuda()) values.flatten().select(0, 0).item<float>();
}

std::string io_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

double per_delivered(const IoReport& report) {
  if (report.delivered_bytes == 0) return 0;
  return static_cast<double>(report.requested_bytes) / static_cast<double>(report.delivered_bytes);
}

}  // namespace

IoReport run_io_bench(const config::RunConfig& config, const std::function<std::unique_ptr<data::Dataset>()>& open,
                      const parallel::Group& replicas, c10::Device device, const WindowOptions& options) {
  IoReport report;
  const Stopwatch start;
  const std::unique_ptr<data::Dataset> dataset = open();
  report.open_ms = start.seconds() * 1e3;
  const data::SampleSpec& spec = dataset->spec();
  report.sample_bytes = (values_of_sample(spec.input) + values_of_sample(spec.target)) * static_cast<int64_t>(sizeof(float));
  data::Pipeline pipeline(*dataset, data::Sampler(dataset->size(), data::Order::Shuffled, config.loop.seed),
                          train::pipeline_options(config, replicas, device, /*drop_last=*/true));
  data::Batch batch = pipeline.next();
  wait_for(batch.target);
  report.first_batch_ms = start.seconds() * 1e3;
  report.batch_samples = batch.input.size(0);
  report.buffer_bytes = pipeline.buffer_bytes();
  report.held_bytes = pipeline.resident_bytes();
  report.num_workers = config.data.num_data_workers;
  const auto take = [&] {
    batch = pipeline.next();
    ++report.num_batches;
    return batch.input.size(0);
  };
  // The kernel clears a buffer's pages at the first write. For 2 GiB of buffers that takes seconds on some machines.
  WindowOptions windows = options;
  windows.warmup_batches = std::max(windows.warmup_batches, pipeline.num_buffers());
  uint64_t faults = 0;
  int64_t warm_ups = 0;
  const auto warmed_up = [&] { faults = page_faults(), warm_ups = report.num_batches; };
  report.rates = measure_rates(windows, {.batch = take, .settle = [&] { wait_for(batch.target); }, .warmed_up = warmed_up});
  report.page_faults_per_batch =
      static_cast<double>(page_faults() - faults) / static_cast<double>(std::max<int64_t>(1, report.num_batches - warm_ups));
  report.requested_bytes = dataset->bytes_requested();
  report.delivered_bytes = static_cast<uint64_t>(pipeline.samples_read() * report.sample_bytes);
  report.peak_resident_bytes = peak_resident_bytes();
  return report;
}

std::string io_text(const IoReport& report) {
  const double bytes_per_second = report.rates.median() * static_cast<double>(report.sample_bytes);
  return cat("IO: ", rates_text(report.rates), ", ", io_number(bytes_per_second * 1e-9), " GB/s, ", report.num_workers,
             " reading threads\n    a sample has ", format_bytes(static_cast<uint64_t>(report.sample_bytes)), ", a batch ",
             report.batch_samples, " samples; ",
             report.held_bytes > 0 ? cat("the device holds ", format_bytes(report.held_bytes), " of values")
                                   : cat("the ring holds ", format_bytes(report.buffer_bytes)),
             "\n    opened after ", io_number(report.open_ms), " ms, first batch after ", io_number(report.first_batch_ms),
             " ms; bytes asked of files per byte delivered: ", io_number(per_delivered(report)),
             "; page faults per batch: ", io_number(report.page_faults_per_batch), "\n");
}

void add_io_json(nlohmann::ordered_json& json, const IoReport& report) {
  json["io_samples_per_s"] = report.rates.median();
  json["io_samples_per_s_spread"] = report.rates.spread();
  json["io_samples_per_s_min"] = report.rates.min();
  json["io_samples_per_s_max"] = report.rates.max();
  json["io_samples_per_s_windows"] = report.rates.windows;
  json["io_bytes_per_s"] = report.rates.median() * static_cast<double>(report.sample_bytes);
  json["sample_bytes"] = report.sample_bytes;
  json["batch_samples"] = report.batch_samples;
  json["batches"] = report.num_batches;
  json["open_ms"] = report.open_ms;
  json["first_batch_ms"] = report.first_batch_ms;
  json["ring_bytes"] = report.buffer_bytes;
  json["held_bytes"] = report.held_bytes;
  json["requested_bytes"] = report.requested_bytes;
  json["delivered_bytes"] = report.delivered_bytes;
  json["requested_per_delivered"] = per_delivered(report);
  json["peak_resident_bytes"] = report.peak_resident_bytes;
  json["io_page_faults_per_batch"] = report.page_faults_per_batch;
}

}  // namespace welkin::bench
