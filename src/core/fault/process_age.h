// SPDX-License-Identifier: Apache-2.0
// The age of this process: a restart takes time before main() begins.
#pragma once

namespace welkin {

// Seconds since the process was started, in hundredths; 0 where the system does not say.
double process_age_s();

}  // namespace welkin
