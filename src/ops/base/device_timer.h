// SPDX-License-Identifier: Apache-2.0
// Measures work on a GPU by its events, to choose the faster form of an operator.
#pragma once

#include <c10/core/Device.h>

#include <functional>

namespace welkin::ops {

double seconds_on_device(c10::Device device, const std::function<void()>& work, int repeats);

}  // namespace welkin::ops
