// SPDX-License-Identifier: Apache-2.0
// Silences torch's warnings about intended behaviour.
#pragma once

#include <c10/util/Exception.h>

namespace welkin::ops {

// While alive, warnings of torch on this thread are not printed.
class QuietWarnings : c10::WarningHandler {
 public:
  QuietWarnings() : guard_(this) {}
  QuietWarnings(const QuietWarnings&) = delete;
  QuietWarnings& operator=(const QuietWarnings&) = delete;
  void process(const c10::Warning& /*warning*/) override {}

 private:
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace welkin::ops
