// SPDX-License-Identifier: Apache-2.0
// The rules that pick the samples: ours, or a tutorial's with its defects (for comparison with its published curves).
#pragma once

namespace welkin::data {

enum class Rules { Corrected, Tutorial };

}  // namespace welkin::data
