// SPDX-License-Identifier: Apache-2.0
// When torch's CUDA libraries are loaded.
#include "launch/torch_loader.h"

#include <gtest/gtest.h>

namespace welkin::launch {
namespace {

TEST(HiddenGpus, AreThoseThatCudaDoesNotShow) {
  EXPECT_TRUE(hides_every_gpu(""));
  EXPECT_TRUE(hides_every_gpu("-1"));
  EXPECT_TRUE(hides_every_gpu("-1,0")) << "what stands behind an index that does not exist is not seen either";
  EXPECT_FALSE(hides_every_gpu(nullptr));
  EXPECT_FALSE(hides_every_gpu("0"));
  EXPECT_FALSE(hides_every_gpu("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"));
}

}  // namespace
}  // namespace welkin::launch
