// SPDX-License-Identifier: Apache-2.0
// Text of non-finite numbers for log lines.
#pragma once

#include <cmath>
#include <string>

namespace welkin::train {

// Written as in Python, like the log's other lines: YAML has ".nan", and C may print "-nan".
inline std::string nonfinite_text(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

}  // namespace welkin::train
