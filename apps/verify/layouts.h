// SPDX-License-Identifier: Apache-2.0
// The second form of `welkin verify`.
#pragma once

#include "apps/cli/application.h"

namespace welkin::apps {

// Runs the verb when --layouts is among its arguments.
int verify_layouts(Application& application, int argc, char** argv);

}  // namespace welkin::apps
