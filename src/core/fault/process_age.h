// SPDX-License-Identifier: Apache-2.0
// How long this process has been there: what a restart takes begins before main().
#pragma once

namespace welkin {

// Seconds since the process was started, in hundredths; 0 where the system does not say.
double process_age_s();

}  // namespace welkin
