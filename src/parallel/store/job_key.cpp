// SPDX-License-Identifier: Apache-2.0
#include "parallel/store/job_key.h"

#include <sodium.h>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

JobKey hashed(std::string_view text, const JobKey* key) {
  JobKey hash{};
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  crypto_generichash(hash.data(), hash.size(), bytes, text.size(), key != nullptr ? key->data() : nullptr,
                     key != nullptr ? key->size() : 0);
  return hash;
}

}  // namespace

JobKey job_key(std::string_view secret) { return hashed(secret, nullptr); }

Nonce random_nonce() {
  WELKIN_CHECK(sodium_init() >= 0, "libsodium finds no source of random numbers");
  Nonce nonce{};
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

JobKey member_proof(const JobKey& key, const std::string& job_nonce, const std::string& group, int64_t from, int64_t to) {
  return hashed(cat("member\n", job_nonce, "\n", from, "\n", to, "\n", group), &key);
}

bool is_equal(const JobKey& a, const JobKey& b) { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace welkin::parallel
