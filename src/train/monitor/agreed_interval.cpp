// SPDX-License-Identifier: Apache-2.0
#include "train/monitor/agreed_interval.h"

#include <utility>

#include "core/error.h"
#include "core/fault/process_age.h"
#include "train/checkpoint/shared_checkpoint.h"

namespace welkin::train {

AgreedInterval::AgreedInterval(const parallel::Group& world, Options options)
    : world_(world), options_(std::move(options)), choice_(options_.mtbf_s) {
  if (options_.resumed && is_first()) {
    choice_ = IntervalChoice(options_.mtbf_s, read_times(options_.file).value_or(MeasuredTimes{}));
  }
  agree();
}

// The first step includes set-up, so time is measured from its end on.
void AgreedInterval::step_done(int64_t step) {
  if (mark_) return;
  mark_ = step;
  since_mark_.restart();
  if (is_first()) choice_.add({.restart_s = process_age_s()});
}

void AgreedInterval::saved(int64_t step, double held_s, double written_s) {
  const int64_t steps = step - mark_.value_or(step);
  if (is_first()) {
    const double step_s = steps > 0 ? (since_mark_.seconds() - held_s) / static_cast<double>(steps) : 0;
    choice_.add({.step_s = step_s, .held_s = held_s, .written_s = written_s});
    try {
      write_times(options_.file, choice_.times());
    } catch (const Error& error) {
      options_.say(error.what());  // a resumed run measures anew
    }
  }
  agree();
  mark_ = step;
  since_mark_.restart();
}

void AgreedInterval::agree() {
  if (is_first()) {
    if (const std::string news = choice_.news(); !news.empty()) options_.say(news);
  }
  steps_ = world_.size() == 1 ? choice_.steps() : told_by_first(world_, choice_.steps());
}

}  // namespace welkin::train
