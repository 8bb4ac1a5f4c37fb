// SPDX-License-Identifier: Apache-2.0
// The event "loss or gradient is not finite". The device skips the update of such a step at once. The host learns of it here,
// on a GPU some steps later, and reports everything that is needed to find the cause.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "core/error.h"
#include "train/step/step_record.h"

namespace welkin::train {

// Thrown under on_nonfinite = stop. Exit code 1; the weights are those before the step.
struct NonFiniteError : Error {
  NonFiniteError(std::string_view what, std::string_view remedy) : Error(ExitCode::Other, "train", what, remedy) {}
};

class NonFiniteWatch {
 public:
  using Report = std::function<void(const std::string&)>;
  using Samples = std::function<std::vector<int64_t>(const StepRecord&)>;
  using Notice = std::function<void(const std::string& event, const StepRecord& record)>;

  // `report` gets the event's line under `skip`. `last_checkpoint` names the newest checkpoint, or is empty. `in_data` says
  // where the data of that step are not finite, or nothing; every rank calls it. `samples` names the samples of a step.
  // `notice` gets the event's name for every such step; may be empty.
  NonFiniteWatch(config::NonFiniteAction action, Report report, std::function<std::string()> last_checkpoint,
                 std::function<std::string(const StepRecord&)> in_data, Samples samples, Notice notice = {})
      : action_(action),
        report_(std::move(report)),
        last_checkpoint_(std::move(last_checkpoint)),
        in_data_(std::move(in_data)),
        samples_(std::move(samples)),
        notice_(std::move(notice)) {}

  // Reads at once on a CPU, every kReadInterval steps on a GPU. Throws NonFiniteError under `stop`.
  void add(const StepRecord& record);
  // Reads the records that are waiting.
  void flush();

  static constexpr size_t kReadInterval = 16;

 private:
  std::string describe(const StepRecord& record) const;

  config::NonFiniteAction action_;
  Report report_;
  std::function<std::string()> last_checkpoint_;
  std::function<std::string(const StepRecord&)> in_data_;
  Samples samples_;
  Notice notice_;
  std::vector<StepRecord> waiting_;
};

}  // namespace welkin::train
