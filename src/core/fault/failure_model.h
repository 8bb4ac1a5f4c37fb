// SPDX-License-Identifier: Apache-2.0
// The cost of checkpoints and failures to a run, and the interval between checkpoints of least cost. Failures come at any
// instant with a constant rate, also while a checkpoint is written and while the run starts again. Arithmetic.
#pragma once

namespace welkin {

// All times are in seconds. All but the first may be 0.
struct FailureCosts {
  double mtbf_s = 0;     // mean time between failures of the whole job; above 0
  double held_s = 0;     // a checkpoint lengthens training by it
  double written_s = 0;  // from its beginning until a run can resume from it; beside training longer than held_s
  double restart_s = 0;  // from a failure until training goes on
};

// Intervals are seconds of training between the end of one checkpoint and the beginning of the next.

// First order: sqrt(2 held_s mtbf_s). J. W. Young, Communications of the ACM 17 (1974) 530.
double young_interval_s(const FailureCosts& costs);
// Higher order: two more terms of a series in held_s / (2 mtbf_s); mtbf_s where half of held_s is more than that. J. T. Daly,
// Future Generation Computer Systems 22 (2006) 303, equation 37.
double daly_interval_s(const FailureCosts& costs);
// The interval of greatest goodput(); at least so long that a checkpoint is written before the next one begins.
double best_interval_s(const FailureCosts& costs);

// Share of the time that goes into training which is not lost. A start that goes on for a time t until the next failure brings
// floor((t - restart_s - (written_s - held_s)) / (interval + held_s)) intervals, and t is exponentially distributed. That is
// Daly's complete model (his equation 13) with the time in which a checkpoint is written beside training added to the restart.
double goodput(const FailureCosts& costs, double interval_s);

}  // namespace welkin
