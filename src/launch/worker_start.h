// SPDX-License-Identifier: Apache-2.0
// Prepares a process of a run before torch is loaded: it ties its life to its launcher's, takes its cores, and sets the
// variables that OpenMP reads while loading.
#pragma once

#include <string>

#include "launch/ranks.h"

namespace welkin::launch {

// `bind` is --bind's value. Sets OMP_NUM_THREADS where the user has not, and WELKIN_BINDING to the chosen binding, for the log.
// Does nothing but the binding in a world of one. Throws ConfigError (a wrong list) and CommError (the system refuses).
void prepare_worker(const RankInfo& place, const std::string& bind);

// The binding that prepare_worker chose: "auto: cpus 0-3, NUMA node 0; 4 threads". Empty where it did nothing.
std::string binding_text(const ReadVariable& read);

}  // namespace welkin::launch
