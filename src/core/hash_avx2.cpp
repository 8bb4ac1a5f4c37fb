// SPDX-License-Identifier: Apache-2.0
// No header of C++ with inline functions may be included here: the linker would use their AVX2 code everywhere.
#include "core/hash_avx2.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace welkin {

#if defined(__AVX2__)
const bool kHasAvx2Hash = true;
#else
const bool kHasAvx2Hash = false;
#endif

void xxh3_update_avx2(void* state, const void* bytes, size_t count) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state), bytes, count);
}

uint64_t xxh3_64_avx2(const void* bytes, size_t count) { return XXH3_64bits(bytes, count); }

}  // namespace welkin
