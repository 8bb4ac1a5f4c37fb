// SPDX-License-Identifier: Apache-2.0
// The GPU's optimizer updates: its kernels, run on the CPU, against the CPU's form.
#include "ops/update/device_update.h"

#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "device_on_cpu.h"
#include "number_close.h"
#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

at::Tensor number(double value) { return at::scalar_tensor(value, at::kFloat); }

double device_norm_of(const std::vector<FloatSpan>& runs) { return device_ops().update.norm(runs, c10::kCPU).item<float>(); }

// Many small ones for several launches, more than a piece, the ends of pieces, nothing at all. `shift`: elements by which every
// other tensor begins off 16 bytes.
struct DeviceArrays {
  std::vector<std::vector<float>> arrays;  // value, gradient, first, second, value, ...
  std::vector<UpdateSpan> runs;

  explicit DeviceArrays(size_t shift) {
    std::vector<int64_t> sizes{1, 0, 3, 4, 5, 4095, 4096, 4097, 2 * 4096 + 2, 40001};
    sizes.resize(2 * kUpdateTensors, 7);
    for (size_t t = 0; t < sizes.size(); ++t) add(t, sizes[t], t % 2 == 0 ? 0 : shift);
  }

 private:
  void add(size_t t, int64_t size, size_t offset) {
    float* places[4] = {};
    for (int k = 0; k < 4; ++k) {
      std::vector<float>& array = arrays.emplace_back(static_cast<size_t>(size) + offset + 4);
      places[k] = aligned(array.data()) + offset;
      for (int64_t i = 0; i < size; ++i) {
        const double wave = std::sin(0.37 * static_cast<double>(i) + k + static_cast<double>(t));
        places[k][i] = static_cast<float>(k == 3 ? std::abs(wave) : wave);
      }
    }
    runs.push_back({size, places[0], places[1], places[2], places[3]});
  }

  static float* aligned(float* place) {
    while (reinterpret_cast<uintptr_t>(place) % 16 != 0) ++place;
    return place;
  }
};

void expect_equal_arrays(const DeviceArrays& got, const DeviceArrays& wanted) {
  for (size_t t = 0; t < wanted.runs.size(); ++t) {
    const UpdateSpan& a = got.runs[t];
    const UpdateSpan& b = wanted.runs[t];
    for (int64_t i = 0; i < b.count; ++i) {
      ASSERT_TRUE(tests::rounds_to(a.value[i], b.value[i], std::max(1.0F, std::abs(b.value[i])), kFp32, 16)) << t << " " << i;
      ASSERT_TRUE(tests::rounds_to(a.first[i], b.first[i], std::max(1.0F, std::abs(b.first[i])), kFp32, 8)) << t << " " << i;
      ASSERT_TRUE(tests::rounds_to(a.second[i], b.second[i], std::max(1.0F, std::abs(b.second[i])), kFp32, 8)) << t << " " << i;
    }
  }
}

class DeviceUpdateTest : public ::testing::TestWithParam<size_t> {
 protected:
  tests::DeviceUpdateOnCpu on_cpu_;
};

TEST_P(DeviceUpdateTest, AdamIsThatOfTheCpu) {
  for (const bool decoupled : {false, true}) {
    const AdamSettings settings{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .decay = 0.01, .decoupled = decoupled};
    const double rate = 0.02, steps = 3;
    DeviceArrays here(GetParam()), there(GetParam());
    const AdamRule rule{.gradient_scale = 0.25F,
                        .decay = decoupled ? 0.0F : 0.01F,
                        .keep = decoupled ? static_cast<float>(1 - rate * 0.01) : 1.0F,
                        .average_share = 0.2F,
                        .square_keep = 0.95F,
                        .square_share = 0.05F,
                        .step = static_cast<float>(rate / (1 - std::pow(0.8, steps))),
                        .root_factor = static_cast<float>(1 / std::sqrt(1 - std::pow(0.95, steps))),
                        .epsilon = 1e-3F};
    device_ops().update.adam(
        there.runs, settings,
        {.rate = number(rate), .gradient_scale = number(0.25), .found_inf = number(0), .steps = number(steps)});
    fused_adam(here.runs, rule);
    expect_equal_arrays(there, here);
  }
}

TEST_P(DeviceUpdateTest, SgdIsThatOfTheCpu) {
  const SgdSettings settings{.momentum = 0.9, .decay = 0.5};
  DeviceArrays here(GetParam()), there(GetParam());
  for (auto& arrays : {&here, &there}) {
    for (UpdateSpan& run : arrays->runs) run.second = nullptr;  // as the optimizer has it
  }
  const std::vector<UpdateSpan> runs = there.runs;
  device_ops().update.sgd(runs, settings,
                          {.rate = number(0.1), .gradient_scale = number(2), .found_inf = number(0), .steps = {}});
  fused_sgd(here.runs, {.gradient_scale = 2.0F, .decay = 0.5F, .momentum = 0.9F, .rate = 0.1F});
  for (size_t t = 0; t < runs.size(); ++t) {
    for (int64_t i = 0; i < runs[t].count; ++i) {
      ASSERT_TRUE(tests::rounds_to(runs[t].value[i], here.runs[t].value[i], 4, kFp32, 8)) << t << " " << i;
      ASSERT_TRUE(tests::rounds_to(runs[t].first[i], here.runs[t].first[i], 4, kFp32, 8)) << t << " " << i;
    }
  }
}

TEST_P(DeviceUpdateTest, NothingChangesWhereAGradientIsNotFinite) {
  const DeviceArrays before(GetParam());
  DeviceArrays after(GetParam());
  device_ops().update.adam(after.runs, {.decay = 0.1, .decoupled = true},
                           {.rate = number(0.1), .gradient_scale = number(1), .found_inf = number(1), .steps = number(1)});
  for (size_t t = 0; t < before.runs.size(); ++t) {
    for (int64_t i = 0; i < before.runs[t].count; ++i) {
      ASSERT_EQ(after.runs[t].value[i], before.runs[t].value[i]);
      ASSERT_EQ(after.runs[t].first[i], before.runs[t].first[i]);
      ASSERT_EQ(after.runs[t].second[i], before.runs[t].second[i]);
    }
  }
}

TEST_P(DeviceUpdateTest, TheNormIsThatOfTheCpu) {
  const DeviceArrays arrays(GetParam());
  std::vector<FloatSpan> runs;
  for (const UpdateSpan& run : arrays.runs) runs.push_back({run.gradient, run.count});
  EXPECT_TRUE(tests::close(device_norm_of(runs), std::sqrt(sum_of_squares(runs)), kFp32, 72));
}

INSTANTIATE_TEST_SUITE_P(Shifts, DeviceUpdateTest, ::testing::Values(0, 1, 2));

TEST(DeviceUpdateTables, APieceKnowsItsTensor) {
  const DeviceArrays arrays(0);
  const std::vector<UpdateTable> tables = update_tables(arrays.runs);
  ASSERT_EQ(tables.size(), 2U) << "an empty tensor takes no place";
  int64_t elements = 0;
  for (const UpdateTable& table : tables) {
    for (int32_t block = 0; block < table.first_piece[table.num_tensors]; ++block) {
      const UpdatePiece piece = piece_at(table, block);
      EXPECT_GT(piece.count, 0);
      EXPECT_LE(piece.count, kUpdatePiece);
      elements += piece.count;
    }
  }
  int64_t wanted = 0;
  for (const UpdateSpan& run : arrays.runs) wanted += run.count;
  EXPECT_EQ(elements, wanted);
}

TEST(DeviceUpdateTables, WideAccessNeedsEveryArray) {
  alignas(16) float values[32] = {};
  const auto wide = [&](float* value, const float* gradient, float* first, float* second) {
    return update_tables({{4, value, gradient, first, second}}).at(0).wide[0];
  };
  EXPECT_TRUE(wide(values, values + 4, values + 8, values + 12));
  EXPECT_TRUE(wide(values, values + 4, values + 8, nullptr));
  EXPECT_FALSE(wide(values + 1, values + 4, values + 8, values + 12));
  EXPECT_FALSE(wide(values, values + 5, values + 8, values + 12));
  EXPECT_FALSE(wide(values, values + 4, values + 9, values + 12));
  EXPECT_FALSE(wide(values, values + 4, values + 8, values + 13));
}

TEST(DeviceUpdateTables, NotFiniteStaysNotFinite) {
  const tests::DeviceUpdateOnCpu on_cpu;
  float values[5] = {1, 2, std::numeric_limits<float>::quiet_NaN(), 3, 4};
  EXPECT_TRUE(std::isnan(device_norm_of({{values, 5}})));
  values[2] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(device_norm_of({{values, 5}})));
  EXPECT_EQ(device_norm_of({}), 0.0);
}

}  // namespace
}  // namespace welkin::ops
