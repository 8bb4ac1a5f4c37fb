// SPDX-License-Identifier: Apache-2.0
// The modes that measure one configuration: IO, SYNTHETIC, FULL, NOCOMM, and all of them.
#include <ATen/Parallel.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/cli/rank_run.h"
#include "bench/step/advice.h"
#include "bench/step/io_bench.h"
#include "bench/step/peaks.h"
#include "bench/step/step_bench.h"
#include "bench/step/step_report.h"
#include "config/schema/batch_plan.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/datasets/stage.h"
#include "train/device/device.h"
#include "train/learn/registries.h"
#include "train/step/layout.h"

namespace welkin::apps {
namespace {

// One run of bench. Each requested mode adds its report.
class BenchRun {
 public:
  explicit BenchRun(const BenchRequest& request) : request_(request) {}

  void io() {
    const auto& registries = request_.application.registries;
    const auto say = [&](const std::string& line) { request_.application.err << line << "\n"; };
    const config::RunConfig config = train::for_device(data::staged(request_.config, say), request_.device);
    const parallel::Group replicas = train::make_mesh_groups(config.parallel, request_.world).along(parallel::kDp);
    const auto& open = registries.datasets.at(config.data.dataset).open;
    bench::IoReport report = bench::run_io_bench(
        config, [&] { return open(config, data::Split::Train); }, replicas, request_.device, request_.windows);
    report.rates.windows = summed_over_ranks(request_.world, report.rates.windows);
    figures_.io = report.rates.median();
    text_ += bench::io_text(report);
    bench::add_io_json(json_, report);
  }

  void step(bench::StepMode mode) {
    const bench::StepReport report = bench::run_step_bench(request_.config, mode,
                                                           {.registries = request_.application.registries,
                                                            .world = request_.world,
                                                            .device = request_.device,
                                                            .windows = request_.windows});
    const double rate = report.rates.median();
    if (mode == bench::StepMode::Synthetic) figures_.synthetic = rate;
    if (mode == bench::StepMode::Full) figures_.full = rate;
    if (mode == bench::StepMode::NoComm) figures_.nocomm = rate;
    reports_.push_back(report);
  }

  BenchResult result() {
    // The peaks come last, so that they do not delay figures that count from the start of the process.
    if (!reports_.empty()) measure_machine();
    std::string text = reports_.empty() ? std::string() : bench::peaks_text(peaks_);
    text += text_;
    for (const bench::StepReport& report : reports_) text += bench::step_text(report, request_.config, peaks_);
    text += compare_communication();
    const bool is_first = !figures_.io && reports_.size() == 1;
    // Keys without a mode are those of SYNTHETIC where it was measured.
    std::stable_partition(reports_.begin(), reports_.end(),
                          [](const auto& report) { return report.mode != bench::StepMode::Synthetic; });
    for (const bench::StepReport& report : reports_) bench::add_step_json(json_, report, request_.config, peaks_);
    if (!reports_.empty()) bench::add_peaks_json(json_, peaks_);
    if (is_first) json_["process_start_to_first_step_s"] = reports_.front().start_seconds;
    const std::string found =
        bench::bottleneck(figures_, reports_.empty() ? std::vector<bench::Phase>() : reports_.back().phases);
    json_["bottleneck"] = found;
    text += cat("bottleneck: ", found, "\n");
    if (!reports_.empty()) advise(text);
    return {text, std::move(json_)};
  }

 private:
  // Compares steps with and without communication where both were measured. Of the former alone the JSON has the calls.
  std::string compare_communication() {
    const auto with = std::ranges::find(reports_, bench::StepMode::Synthetic, &bench::StepReport::mode);
    const auto without = std::ranges::find(reports_, bench::StepMode::NoComm, &bench::StepReport::mode);
    if (with == reports_.end()) return {};
    if (without == reports_.end()) {
      if (!with->traffic.calls.empty()) bench::add_calls_json(json_, with->traffic);
      return {};
    }
    const auto found = bench::communication_of(with->traffic, with->step_seconds, without->step_seconds);
    bench::add_communication_json(json_, with->traffic, found);
    return bench::communication_text(with->traffic, found);
  }

  // All ranks measure at the same time; the figures are for all of them together.
  void measure_machine() {
    peaks_ = peaks_of_machine(request_);
    const std::vector<double> sums = summed_over_ranks(
        request_.world,
        {peaks_.fp32_flops, peaks_.bf16_flops, peaks_.bytes, peaks_.theoretical_fp32_flops, peaks_.theoretical_bf16_flops});
    peaks_.fp32_flops = sums[0], peaks_.bf16_flops = sums[1], peaks_.bytes = sums[2];
    peaks_.theoretical_fp32_flops = sums[3], peaks_.theoretical_bf16_flops = sums[4];
  }

  void advise(std::string& text) {
    const int64_t batch = std::min(config::batch_plan(request_.config).micro, reports_.back().batch_samples);
    const std::vector<std::string> lines = bench::advice(request_.config, {.is_gpu = request_.device.is_cuda(),
                                                                           .batch = batch,
                                                                           .threads = at::get_num_threads(),
                                                                           .cores = usable_cores(),
                                                                           .fp32_flops = peaks_.fp32_flops,
                                                                           .bf16_flops = peaks_.bf16_flops});
    for (const std::string& line : lines) text += cat("advice: ", line, "\n");
    json_["advice"] = lines;
  }

  const BenchRequest& request_;
  bench::Peaks peaks_;
  bench::Figures figures_;
  std::vector<bench::StepReport> reports_;
  std::string text_;
  nlohmann::ordered_json json_;
};

BenchResult bench_one(const BenchRequest& request, bench::StepMode mode) {
  BenchRun run(request);
  run.step(mode);
  return run.result();
}

}  // namespace

BenchResult bench_io(const BenchRequest& request) {
  BenchRun run(request);
  run.io();
  return run.result();
}

BenchResult bench_synthetic(const BenchRequest& request) { return bench_one(request, bench::StepMode::Synthetic); }
BenchResult bench_full(const BenchRequest& request) { return bench_one(request, bench::StepMode::Full); }
BenchResult bench_nocomm(const BenchRequest& request) { return bench_one(request, bench::StepMode::NoComm); }

BenchResult bench_all(const BenchRequest& request) {
  BenchRun run(request);
  run.io();
  run.step(bench::StepMode::Synthetic);
  run.step(bench::StepMode::Full);
  if (request.world.size() > 1) run.step(bench::StepMode::NoComm);
  return run.result();
}

}  // namespace welkin::apps
