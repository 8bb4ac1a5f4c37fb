// SPDX-License-Identifier: Apache-2.0
// Groups whose collectives send nothing, to measure a step without communication. Its results are wrong.
#pragma once

#include <string>

#include "parallel/comm/group.h"

namespace welkin::parallel {

// The group `members` as Connection::make_group would make it. Reductions leave the caller's values, gathers and exchanges hand
// out copies of this rank's own, receives give zeros: shapes are right, values are finite where the inputs are, and no call waits
// for another rank. No Reducer can be made over it: train with DataParallelOptions::exchange off.
Group fake_group(const std::string& name, GroupMembers members);

}  // namespace welkin::parallel
