// SPDX-License-Identifier: Apache-2.0
// The ranks that talk to each other, and this rank's place among them. A value: copies are the same group. Groups are passed in,
// never looked up; a group of one is the identity in every collective, never a special case in callers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "parallel/mesh/mesh.h"

namespace welkin::parallel {

class CollectiveMonitor;  // counts, records and judges the calls of one group (collective_monitor.h)
class Communicator;       // moves the bytes (communicator.h)

class Group {
 public:
  Group() : members_{{0}, 0} {}  // this rank alone
  Group(std::string name, GroupMembers members, std::shared_ptr<Communicator> communicator,
        std::shared_ptr<CollectiveMonitor> monitor);

  int64_t size() const { return members_.size(); }
  int64_t group_rank() const { return members_.place; }                 // of this rank in ranks()
  const std::vector<int64_t>& ranks() const { return members_.ranks; }  // of the world, in the order of the mesh
  const std::string& name() const { return name_; }                     // "tp"
  std::string text() const;                                             // "tp [0, 1]"

  // For collectives.cpp and the Reducer's adapter. Only in groups of more than one.
  Communicator& communicator() const { return *communicator_; }
  CollectiveMonitor& monitor() const { return *monitor_; }
  const std::shared_ptr<CollectiveMonitor>& shared_monitor() const { return monitor_; }

 private:
  std::string name_ = "alone";
  GroupMembers members_;
  std::shared_ptr<CollectiveMonitor> monitor_;
  std::shared_ptr<Communicator> communicator_;
};

}  // namespace welkin::parallel
