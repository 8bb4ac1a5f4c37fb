// SPDX-License-Identifier: Apache-2.0
// The time of work on a GPU, by its own events: for forms of an operator of which the faster is chosen.
#pragma once

#include <c10/core/Device.h>

#include <functional>

namespace welkin::ops {

double seconds_on_device(c10::Device device, const std::function<void()>& work, int repeats);

}  // namespace welkin::ops
