// SPDX-License-Identifier: Apache-2.0
#include "parallel/store/sealed_channel.h"

#include <gtest/gtest.h>

namespace welkin::parallel {
namespace {

struct Ends {
  SealedChannel client, server;
};

Ends ends_of(const JobKey& of_client, const JobKey& of_server) {
  const Nonce a = random_nonce(), b = random_nonce();
  return {SealedChannel(of_client, a, b, ChannelSide::Client), SealedChannel(of_server, a, b, ChannelSide::Server)};
}

TEST(SealedChannel, OpensWhatTheOtherEndSealed) {
  Ends ends = ends_of(job_key("a secret of the job"), job_key("a secret of the job"));
  for (const std::string text : {"", "one", "two"}) {
    EXPECT_EQ(ends.server.open(ends.client.seal(text)), text);
    EXPECT_EQ(ends.client.open(ends.server.seal(text)), text);
  }
}

TEST(SealedChannel, DoesNotShowTheText) {
  Ends ends = ends_of(job_key("a secret of the job"), job_key("a secret of the job"));
  EXPECT_EQ(ends.client.seal("a text to hide").find("text"), std::string::npos);
}

TEST(SealedChannel, OpensNothingOfAnotherKey) {
  Ends ends = ends_of(job_key("a secret of the job"), job_key("a secret of the jo!"));
  EXPECT_EQ(ends.server.open(ends.client.seal("text")), std::nullopt);
}

TEST(SealedChannel, OpensNothingTwiceOrOutOfOrderOrChanged) {
  const JobKey key = job_key("a secret of the job");
  Ends ends = ends_of(key, key);
  const std::string first = ends.client.seal("first");
  EXPECT_EQ(ends.server.open(first), "first");
  EXPECT_EQ(ends.server.open(first), std::nullopt);
  Ends skips = ends_of(key, key);
  skips.client.seal("lost");
  EXPECT_EQ(skips.server.open(skips.client.seal("second")), std::nullopt);
  for (size_t at = 0; at < 4 + SealedChannel::kOverhead; ++at) {
    Ends flips = ends_of(key, key);
    std::string sealed = flips.client.seal("text");
    sealed[at] = static_cast<char>(sealed[at] ^ 1);
    EXPECT_EQ(flips.server.open(sealed), std::nullopt);
  }
  EXPECT_EQ(ends_of(key, key).server.open("short"), std::nullopt);
}

// What was said in one connection is no message in another one of the same key, nor to who said it.
TEST(SealedChannel, OpensNothingOfAnotherConnection) {
  const JobKey key = job_key("a secret of the job");
  Ends earlier = ends_of(key, key), later = ends_of(key, key);
  const std::string recorded = earlier.client.seal("text");
  EXPECT_EQ(later.server.open(recorded), std::nullopt);
  EXPECT_EQ(earlier.client.open(recorded), std::nullopt);
}

TEST(JobKey, ProofsAreOfOneGroupAndOnePair) {
  const JobKey key = job_key("a secret of the job");
  const JobKey proof = member_proof(key, "nonce", "dp 0", 1, 2);
  EXPECT_TRUE(is_equal(proof, member_proof(key, "nonce", "dp 0", 1, 2)));
  EXPECT_FALSE(is_equal(proof, member_proof(key, "nonce", "dp 0", 2, 1)));
  EXPECT_FALSE(is_equal(proof, member_proof(key, "nonce", "dp 1", 1, 2)));
  EXPECT_FALSE(is_equal(proof, member_proof(key, "another", "dp 0", 1, 2)));
  EXPECT_FALSE(is_equal(proof, member_proof(job_key(""), "nonce", "dp 0", 1, 2)));
}

}  // namespace
}  // namespace welkin::parallel
