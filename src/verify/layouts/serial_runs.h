// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "verify/layouts/layout_check.h"
#include "verify/layouts/layout_training.h"

namespace welkin::verify {

// The runs of one process that layouts are compared with. Many layouts have the same one, and every rank needs it: each run is
// computed by one rank, and the others get its values.
class SerialRuns {
 public:
  SerialRuns(const LayoutSubject& subject, const LayoutRanks& ranks) : subject_(subject), ranks_(ranks) {}

  // Every rank of the world calls it with the same cases, before it asks for one of them.
  void learn(const std::vector<LayoutCase>& cases);

  // Throws std::out_of_range for a case that was not learned.
  const LayoutRun& of(const LayoutCase& c) const;

 private:
  const LayoutSubject& subject_;
  const LayoutRanks& ranks_;
  std::map<std::string, LayoutRun> runs_;  // by what one process needs to know of a case
};

}  // namespace welkin::verify
