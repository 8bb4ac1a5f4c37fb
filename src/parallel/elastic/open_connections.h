// SPDX-License-Identifier: Apache-2.0
// The network connections of this process. A call of Gloo or of the store that waits for a lost rank ends only when its
// socket does.
#pragma once

#include <sys/types.h>

#include <set>

namespace welkin::parallel {

// Connected sockets of the network (IPv4, IPv6), by inode: descriptors may be reused for other sockets in the meantime.
std::set<ino_t> open_connections();
// Shuts down, in both directions, all connections that are not in `before`. Their owners close them. Returns their number.
int shut_down_since(const std::set<ino_t>& before);

}  // namespace welkin::parallel
