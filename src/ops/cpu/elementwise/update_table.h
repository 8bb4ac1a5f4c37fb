// SPDX-License-Identifier: Apache-2.0
// All updates as one table. Included by one file per instruction set; see ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#include "ops/cpu/elementwise/adaptive_update_loops.h"
#include "ops/cpu/elementwise/lean_update_loops.h"
#include "ops/cpu/elementwise/update_loops.h"

namespace welkin::ops {
namespace {

template <int W>
constexpr UpdateKernel kUpdates{.adam = adam_loop,
                                .sgd = sgd_loop,
                                .square_sum = square_sum_loop<W>,
                                .adaptive = {.lion = lion_loop,
                                             .lamb_sums = lamb_sums_loop<W>,
                                             .lamb = lamb_loop,
                                             .lars_sums = lars_sums_loop<W>,
                                             .lars = lars_loop,
                                             .adafactor_sums = adafactor_sums_loop<W>,
                                             .adafactor = adafactor_loop,
                                             .factor_squares = factor_squares_loop<W>,
                                             .factored_sum = factored_sum_loop<W>,
                                             .factored = factored_loop,
                                             .average = average_loop},
                                .lean = {.bf16_adam = bf16_adam_loop, .coded_adam = coded_adam_loop<W>}};

}  // namespace
}  // namespace welkin::ops
