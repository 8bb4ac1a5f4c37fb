// SPDX-License-Identifier: Apache-2.0
// The output of a run: the tutorials' log lines and TensorBoard tags, byte for byte (docs of the interface:
// docs/development/design.md), and a few lines of our own. Knows no model and no step; one per run, on the logging rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/resolve/resolve.h"
#include "data/sample/dataset.h"
#include "observe/events/event_writer.h"
#include "observe/log/metrics_csv.h"
#include "observe/log/run_log.h"
#include "train/run/field_picture.h"

namespace welkin::train {

struct EpochReport {
  int64_t epoch = 0;       // from 1
  int64_t iterations = 0;  // of the run so far: the step of every scalar
  int64_t steps = 0;       // of this epoch, in this process
  int64_t samples = 0;     // trained on in `seconds`
  double seconds = 0;      // of the training loop alone
  double loss = 0;         // mean over the epoch
  double last_lr = 0;      // of the last step
  double next_lr = 0;      // of the step that follows
  int64_t skipped = 0;     // updates that were skipped
  std::string throughput;  // throughput.h; empty when unknown
};

struct StepReport {
  double loss = 0, gradient_norm = 0;  // the norm before clipping
  double memory_gib = 0;               // the peak: of tensors on a GPU, of the process on a CPU
};

struct ValidationReport {
  double loss = 0;
  std::optional<double> first_channel_rmse;  // latitude-weighted, fields only
  double seconds = 0;
  int64_t nonfinite = 0;                                   // samples whose loss is not finite
  std::vector<std::pair<int64_t, double>> watched_rmse{};  // of the channels that the run is judged by (watched_channels)
};

// The files for the scalars of a run.
struct ScalarFiles {
  std::optional<std::filesystem::path> events;  // folder for TensorBoard; nothing on ranks that do not write
  std::optional<std::filesystem::path> csv;     // metrics.csv; nothing if it is not wanted
};

class MetricLogger {
 public:
  // `spec` names channels and says whether samples are fields. `resume_from`: scalars from this step on in earlier files are
  // void.
  MetricLogger(observe::RunLog& log, const config::RunConfig& config, const data::SampleSpec& spec, const ScalarFiles& files,
               std::optional<int64_t> resume_from);

  void initial(const EpochReport& train, const ValidationReport& valid);
  void epoch(const EpochReport& report);
  // Logs one step in between (log_every_n_steps): its line and scalars.
  void step(const std::string& line, const StepReport& report, int64_t step, int64_t epoch);
  void picture(const ForecastPair& pair, int64_t step);
  void event(const std::string& name, int64_t step) { scalar("Events/" + name, 1, step); }
  void validation(const ValidationReport& report, int64_t step);
  // A failure to write events ends no run: the error is logged, and the events are kept and tried again with the next ones.
  void flush();

  bool draws_pictures() const { return is_field_; }
  int64_t picture_channel() const;  // 2 (t2m in the tutorials' layout), or 0 if there are fewer channels

 private:
  void scalar(const std::string& tag, double value, int64_t step);
  void try_to_write(const std::function<void()>& write);
  void log_validation(const ValidationReport& report);
  void warn_of_nonfinite(const ValidationReport& report, int64_t step);
  std::string channel_name(int64_t channel, const std::string& unnamed) const;

  observe::RunLog& log_;
  const data::SampleSpec& spec_;
  bool is_unet_;  // the U-Net tutorials' line formats and tags
  bool is_field_;
  config::NanPolicy nan_policy_;
  bool warned_of_nonfinite_ = false;
  std::optional<observe::EventWriter> events_;
  std::optional<observe::MetricsCsv> csv_;
  int64_t epoch_ = 0;  // the epoch of the next scalars
};

// Configuration block at the top of out.log.
void log_configuration(observe::RunLog& log, const config::Resolved& resolved);

}  // namespace welkin::train
