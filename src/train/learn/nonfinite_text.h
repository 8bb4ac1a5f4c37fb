// SPDX-License-Identifier: Apache-2.0
// Numbers of log lines that are none.
#pragma once

#include <cmath>
#include <string>

namespace welkin::train {

// As Python prints them, whose lines the log's are: YAML has ".nan", and C may print "-nan".
inline std::string nonfinite_text(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

}  // namespace welkin::train
