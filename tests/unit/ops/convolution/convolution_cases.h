// SPDX-License-Identifier: Apache-2.0
// The shapes with which own convolutions and transposed convolutions are tested.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "ops/convolution/convolution.h"

namespace welkin::ops {

struct ConvolutionCase {
  int64_t batch, in, out;
  BoxShape box, kernel;
  ConvolutionParams rule;
  double slope = 1.0;
  int64_t second = 0;  // channels of a second tensor
  friend std::ostream& operator<<(std::ostream& to, const ConvolutionCase& c) {
    return to << c.batch << " x " << c.in << "->" << c.out << ", " << c.box[0] << 'x' << c.box[1] << 'x' << c.box[2] << " kernel "
              << c.kernel[0] << c.kernel[1] << c.kernel[2] << " stride " << c.rule.stride[0] << " slope " << c.slope << " second "
              << c.second;
  }
};

inline const BoxShape kFour{4, 4, 4};
inline const ConvolutionParams kHalving{{2, 2, 2}, {1, 1, 1}};
// The U-Net's shapes down to the last voxel, channels with every tail of a panel, depth beyond a block, and other kernels.
inline const std::vector<ConvolutionCase> kConvolutionCases{
    {2, 16, 16, {8, 8, 8}, kFour, kHalving},
    {1, 32, 48, {4, 6, 10}, kFour, kHalving},
    {4, 48, 80, {2, 2, 2}, kFour, kHalving},
    {1, 288, 64, {4, 4, 4}, kFour, kHalving},
    {3, 16, 144, {5, 7, 9}, kFour, kHalving},
    {2, 16, 32, {5, 4, 6}, {3, 3, 3}, {{1, 1, 1}, {1, 1, 1}}},
    {1, 32, 16, {6, 7, 8}, {2, 3, 1}, {{3, 2, 1}, {0, 2, 0}}},
    {2, 16, 32, {8, 8, 8}, kFour, kHalving, 0.01},
    {2, 32, 16, {4, 4, 4}, kFour, kHalving, 0.0, 48},
    {1, 272, 80, {2, 4, 2}, kFour, kHalving, 0.01, 16},
    {1, 16, 16, {1, 1, 150}, {1, 1, 3}, {{1, 1, 1}, {0, 0, 1}}},
    {1, 32, 16, {1, 2, 600}, {1, 2, 3}, {{1, 1, 1}, {0, 0, 1}}},
};

// Few channels on the fine grid: of the input downwards, of the result upwards.
inline const std::vector<ConvolutionCase> kNarrowDown{
    {2, 4, 64, {8, 8, 8}, kFour, kHalving, 0.01},
    {1, 1, 16, {4, 4, 4}, kFour, kHalving},
    {3, 5, 80, {7, 9, 11}, {3, 2, 3}, {{2, 1, 3}, {1, 0, 2}}, 0.5},
    {1, 20, 48, {6, 5, 4}, {3, 3, 3}, {{1, 1, 1}, {1, 1, 1}}},
    {1, 3, 144, {20, 20, 40}, kFour, kHalving, 0.01},
    {1, 5, 16, {4, 4, 6}, kFour, kHalving, 0.01, 11},
};
inline const std::vector<ConvolutionCase> kNarrowUp{
    {2, 64, 5, {4, 4, 4}, kFour, kHalving, 1.0, 64},
    {1, 16, 1, {2, 3, 5}, kFour, kHalving},
    {3, 80, 3, {3, 4, 5}, {3, 2, 3}, {{2, 1, 3}, {1, 0, 2}}, 0.5},
    {1, 288, 20, {4, 3, 5}, {3, 3, 3}, {{1, 1, 1}, {1, 1, 1}}, 1.0, 16},
    {1, 16, 5, {8, 8, 16}, kFour, kHalving, 0.01},
};

// Float32 takes multiples of 8 on the coarse grid, so that the last vector of 16 lanes may be half one.
inline const std::vector<ConvolutionCase> kHalfVectors{
    {2, 16, 8, {8, 6, 4}, kFour, kHalving, 0.01},
    {1, 8, 24, {4, 6, 10}, kFour, kHalving},
    {1, 48, 72, {3, 5, 4}, {3, 3, 3}, {{1, 1, 1}, {1, 1, 1}}, 0.5},
    {3, 8, 8, {5, 7, 9}, kFour, kHalving, 0.0},
    {1, 40, 136, {2, 2, 2}, kFour, kHalving, 0.01},
};
inline const std::vector<ConvolutionCase> kHalfVectorsDown{
    {2, 4, 8, {8, 8, 8}, kFour, kHalving, 0.01},
    {1, 16, 8, {4, 4, 6}, kFour, kHalving, 0.01, 32},
    {1, 3, 40, {20, 20, 40}, kFour, kHalving, 0.01},
};
inline const std::vector<ConvolutionCase> kHalfVectorsUp{
    {2, 8, 5, {4, 4, 4}, kFour, kHalving, 1.0, 8},
    {1, 24, 16, {3, 4, 5}, kFour, kHalving, 0.01, 16},
    {1, 264, 3, {3, 4, 5}, {3, 2, 3}, {{2, 1, 3}, {1, 0, 2}}, 0.5},
};

// Pieces of a box: the padding differs from end to end.
inline const std::vector<ConvolutionCase> kUnequalEnds{
    {1, 16, 32, {4, 5, 6}, kFour, {{2, 2, 2}, {1, 0, 2}, BoxShape{0, 1, 1}}, 0.01},
    {2, 32, 16, {3, 4, 2}, kFour, {{2, 1, 2}, {1, 3, 0}, BoxShape{2, 0, 3}}, 1.0, 16},
    {1, 16, 16, {3, 3, 3}, {3, 3, 3}, {{2, 1, 2}, {0, 2, 1}, BoxShape{2, 2, 0}}},
};
inline const std::vector<ConvolutionCase> kUnequalNarrowDown{
    {1, 4, 32, {6, 4, 7}, kFour, {{2, 2, 2}, {1, 0, 2}, BoxShape{0, 1, 1}}, 0.01},
    {2, 5, 16, {3, 3, 5}, {3, 2, 3}, {{2, 1, 3}, {0, 1, 2}, BoxShape{1, 0, 0}}},
};
inline const std::vector<ConvolutionCase> kUnequalNarrowUp{
    {2, 64, 5, {2, 4, 3}, kFour, {{2, 2, 2}, {2, 0, 1}, BoxShape{3, 2, 0}}, 1.0, 64},
    {1, 16, 3, {4, 2, 2}, {3, 2, 3}, {{2, 1, 3}, {0, 1, 2}, BoxShape{1, 0, 2}}, 0.5},
};
inline const ConvolutionCase kPointsAdded{1, 16, 32, {2, 3, 4}, kFour, {{2, 2, 2}, {1, 0, 1}, BoxShape{-1, 1, -1}}, 0.01};

}  // namespace welkin::ops
