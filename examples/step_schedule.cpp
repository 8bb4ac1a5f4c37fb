// SPDX-License-Identifier: Apache-2.0
// A schedule of one's own: the rate falls to a tenth at half of the run and again at three quarters.
//   welkin --plugin build/release/examples/libstep_schedule.so train ... --set lr_schedule=step
// A schedule is a pure function of the steps done: nothing to save, nothing to restore.
#include "train/learn/registries.h"

namespace {

using namespace welkin;

class StepSchedule : public train::LrSchedule {
 public:
  StepSchedule(double peak, int64_t total_steps) : peak_(peak), total_steps_(total_steps) {}

  double rate(int64_t steps_done) const override {
    if (4 * steps_done >= 3 * total_steps_) return peak_ / 100;
    if (2 * steps_done >= total_steps_) return peak_ / 10;
    return peak_;
  }

 private:
  double peak_;
  int64_t total_steps_;
};

}  // namespace

extern "C" void welkin_register(welkin::train::Registries& registries) {
  registries.schedules.add("step", [](const config::RunConfig& config, const train::RunLength& length) {
    return std::make_unique<StepSchedule>(train::peak_lr(config), length.total_steps);
  });
}
