// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/group.h"

#include <utility>

#include "core/text.h"
#include "parallel/comm/collective_monitor.h"
#include "parallel/comm/communicator.h"

namespace welkin::parallel {

Group::Group(std::string name, GroupMembers members, std::shared_ptr<Communicator> communicator,
             std::shared_ptr<CollectiveMonitor> monitor)
    : name_(std::move(name)),
      members_(std::move(members)),
      monitor_(std::move(monitor)),
      communicator_(std::move(communicator)) {}

std::string Group::text() const { return cat(name_, " [", join(members_.ranks, ", "), "]"); }

}  // namespace welkin::parallel
