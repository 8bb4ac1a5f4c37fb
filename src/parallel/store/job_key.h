// SPDX-License-Identifier: Apache-2.0
// The key of a job's sockets, from the secret that its launcher gives to all ranks. BLAKE2b (RFC 7693) throughout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace welkin::parallel {

using JobKey = std::array<unsigned char, 32>;
using Nonce = std::array<unsigned char, 32>;

// The secret's hash. An empty secret has a key, too, but a publicly known one.
JobKey job_key(std::string_view secret);

// From the system's generator of random numbers.
Nonce random_nonce();

// Proof of the member at `from` for the one at `to` on their connection in a group: a keyed hash of the job's nonce, the
// group's name and both ranks, so that it is of no use elsewhere.
JobKey member_proof(const JobKey& key, const std::string& job_nonce, const std::string& group, int64_t from, int64_t to);

// Compares in constant time.
bool is_equal(const JobKey& a, const JobKey& b);

}  // namespace welkin::parallel
