// SPDX-License-Identifier: Apache-2.0
// The network connections of this process. A call of Gloo or of the store that waits for a rank which is gone ends only when its
// socket does.
#pragma once

#include <sys/types.h>

#include <set>

namespace welkin::parallel {

// Connected sockets of the network (IPv4, IPv6), by inode: a descriptor may be another socket's by the time that it is looked at.
std::set<ino_t> open_connections();
// Shuts down, in both directions, those that are not among `before`. They stay open for their owners. Their number.
int shut_down_since(const std::set<ino_t>& before);

}  // namespace welkin::parallel
