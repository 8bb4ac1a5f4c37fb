// SPDX-License-Identifier: Apache-2.0
// What a message holds, and which parameters need no packing.
#include "parallel/sharding/shard_bucket.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <vector>

namespace welkin::parallel {
namespace {

constexpr int64_t kMembers = 2, kRank = 1;

// Values 0, 1, 2 ..., and a gradient of the same.
ParamRow row_of(const char* name, at::IntArrayRef shape) {
  const int64_t count = c10::multiply_integers(shape);
  ParamRow row;
  row.name = name;
  row.global_shape = shape.vec();
  row.local = at::arange(count, at::kFloat).view(shape);
  row.split = MemorySplit(row.local, kMembers);
  row.shard = row.split.piece_of(memory_of(row.local), kRank);
  row.local.mutable_grad() = row.local.clone();
  return row;
}

TEST(ShardBucket, HoldsALargeParameterOfEqualPiecesAlone) {
  ParamRow small = row_of("small", {4, 4}), large = row_of("large", {512, 512}), other = row_of("other", {4}),
           last = row_of("last", {6});
  ParamRow uneven = row_of("uneven", {513, 512});
  const auto messages = rows_of_messages({&small, &uneven, &large, &other, &last});
  const std::vector<std::vector<ParamRow*>> wanted{{&small, &uneven}, {&large}, {&other, &last}};
  EXPECT_EQ(messages, wanted);
}

TEST(ShardBucket, SendsAParameterOfEqualPiecesFromItsMemory) {
  ParamRow row = row_of("weight", {6, 4});
  const ShardBucket bucket({&row}, kMembers);
  const at::Tensor memory = memory_of(row.local);
  EXPECT_EQ(bucket.packed_pieces().const_data_ptr(), row.shard.const_data_ptr());
  const at::Tensor room = bucket.room_for_all({memory});
  EXPECT_EQ(room.const_data_ptr(), row.local.const_data_ptr());
  EXPECT_EQ(room.sizes(), at::IntArrayRef({kMembers, bucket.length()}));
  const auto version = row.local._version();
  bucket.unpack_whole(room, {memory}, kRank);
  EXPECT_TRUE(at::equal(memory, at::arange(24, at::kFloat)));
  EXPECT_GT(row.local._version(), version) << "who keeps packed weights looks at it";

  const at::Tensor gradient = row.local.grad();
  const at::Tensor sent = bucket.packed_gradients(at::kFloat);
  EXPECT_EQ(sent.const_data_ptr(), gradient.const_data_ptr());
  EXPECT_FALSE(row.local.grad().defined());
  bucket.add_gradients(sent[kRank], kRank);
  EXPECT_TRUE(at::equal(row.shard.grad(), row.shard));
}

TEST(ShardBucket, PacksAGradientOfAnotherTypeOrNone) {
  ParamRow row = row_of("weight", {6, 4});
  const ShardBucket bucket({&row}, kMembers);
  const at::Tensor narrow = bucket.packed_gradients(at::kBFloat16);
  EXPECT_EQ(narrow.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(narrow.view({-1}).to(at::kFloat), memory_of(row.local)));
  EXPECT_EQ(bucket.packed_gradients(at::kFloat).count_nonzero().item<int64_t>(), 0) << "it has been sent";
}

TEST(ShardBucket, PacksPiecesOfSeveralParameters) {
  ParamRow first = row_of("first", {6, 4}), second = row_of("second", {3});
  const ShardBucket bucket({&first, &second}, kMembers);
  EXPECT_EQ(bucket.length(), 12 + 2);
  const at::Tensor whole = bucket.packed_gradients(at::kFloat);
  EXPECT_TRUE(at::equal(whole[0].narrow(0, 0, 12), at::arange(12, at::kFloat)));
  EXPECT_TRUE(at::equal(whole[1].narrow(0, 12, 1), at::arange(2, 3, at::kFloat)));
  bucket.add_gradients(whole[kRank], kRank);
  EXPECT_TRUE(at::equal(first.shard.grad(), first.shard));
  EXPECT_TRUE(at::equal(second.shard.grad(), second.shard));
}

}  // namespace
}  // namespace welkin::parallel
