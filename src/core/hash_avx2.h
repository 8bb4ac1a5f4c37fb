// SPDX-License-Identifier: Apache-2.0
// XXH3 with AVX2, for hash.cpp alone: the same hashes, from a file that is compiled with flags of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace welkin {

// False where the compiler was not given the flag; then the functions must not be called.
extern const bool kHasAvx2Hash;

// `state`: an XXH3_state_t.
void xxh3_update_avx2(void* state, const void* bytes, size_t count);
uint64_t xxh3_64_avx2(const void* bytes, size_t count);

}  // namespace welkin
