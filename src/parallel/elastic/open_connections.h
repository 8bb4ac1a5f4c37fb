// SPDX-License-Identifier: Apache-2.0
// The network connections of this process by their descriptors. A call of Gloo or of the store that waits for a rank which is
// gone ends only when its socket does.
#pragma once

#include <set>

namespace welkin::parallel {

// Descriptors of connected sockets of the network (IPv4, IPv6).
std::set<int> open_connections();
// Shuts down, in both directions, those that are not among `before`. They stay open for their owners. Their number.
int shut_down_since(const std::set<int>& before);

}  // namespace welkin::parallel
