// SPDX-License-Identifier: Apache-2.0
// Studies of welkin bench: flags with a command line of their own, which start their ranks themselves (--tiles needs none).
// A study is a function here and a row of the table in apps/bench/modes.cpp.
#pragma once

#include "apps/cli/application.h"

namespace welkin::apps {

int bench_collectives(Application& application, int argc, char** argv);  // apps/bench/links.cpp
int bench_scaling(Application& application, int argc, char** argv);      // apps/bench/scaling.cpp
int bench_figures(Application& application, int argc, char** argv);      // apps/bench/figures.cpp
int bench_tiles(Application& application, int argc, char** argv);        // apps/bench/tiles.cpp

}  // namespace welkin::apps
