// SPDX-License-Identifier: Apache-2.0
// Lists of hosts as batch systems write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace welkin::launch {

// Slurm: "nid[0001-0003,0007],login1" -> nid0001 nid0002 nid0003 nid0007 login1, in this order. ConfigError naming `variable`
// when the brackets or numbers are wrong, or the list stands for more than a million hosts.
std::vector<std::string> expand_host_list(std::string_view list, std::string_view variable);

// Slurm: "4(x2),3" -> 4 4 3, the tasks of each node.
std::vector<int64_t> expand_task_counts(std::string_view counts, std::string_view variable);

}  // namespace welkin::launch
