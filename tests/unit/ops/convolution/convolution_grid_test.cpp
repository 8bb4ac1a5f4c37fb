// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/convolution_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace welkin::ops {
namespace {

TEST(ConvolutionGrid, PartnersOfBothGridsAreInverse) {
  const ConvolutionGeometry c{1, {7, 8, 9}, {3, 4, 4}, {4, 4, 4}, {2, 2, 2}, {1, 1, 1}};
  for (int axis = 0; axis < kBoxAxes; ++axis) {
    const AxisPartners up = axis_partners(c, axis, Grid::Fine);
    const AxisPartners down = axis_partners(c, axis, Grid::Coarse);
    for (size_t k = 0; k < down.size(); ++k) {
      for (size_t o = 0; o < down[k].size(); ++o) {
        if (down[k][o] < 0) continue;
        EXPECT_EQ(up[k][static_cast<size_t>(down[k][o])], static_cast<int64_t>(o));
      }
    }
  }
}

// Each voxel is in one group, and its group's taps are those that give it a partner anywhere.
TEST(ConvolutionGrid, GroupsHaveThePairsOfTheirTaps) {
  const std::vector<ConvolutionGeometry> convolutions{{1, {7, 8, 9}, {3, 4, 4}, {4, 4, 4}, {2, 2, 2}, {1, 1, 1}},
                                                      {2, {5, 6, 7}, {5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
                                                      {1, {7, 5, 4}, {2, 3, 8}, {2, 3, 1}, {3, 2, 1}, {0, 2, 2}}};
  for (const ConvolutionGeometry& c : convolutions) {
    for (const Grid grid : {Grid::Coarse, Grid::Fine}) {
      const TapPairs pairs(c, grid);
      const TapGroups groups(c, grid);
      const int64_t first = 1;
      const int64_t last = pairs.num_lines() - 1;
      const int64_t voxels = (last - first) * pairs.line_length();
      std::vector<int64_t> members;
      std::vector<int64_t> partners;
      std::vector<int64_t> seen;
      std::map<int64_t, std::set<std::pair<int64_t, int64_t>>> found;
      for (int64_t group = 0; group < groups.num_groups(); ++group) {
        groups.voxels(group, first, last, members);
        seen.insert(seen.end(), members.begin(), members.end());
        for (const int64_t tap : groups.taps(group)) {
          groups.partners(group, tap, first, last, partners);
          ASSERT_EQ(partners.size(), members.size());
          for (size_t i = 0; i < members.size(); ++i) {
            if (partners[i] >= 0) found[tap].insert({members[i], partners[i]});
          }
        }
      }
      std::sort(seen.begin(), seen.end());
      std::vector<int64_t> all(static_cast<size_t>(voxels));
      std::iota(all.begin(), all.end(), first * pairs.line_length());
      EXPECT_EQ(seen, all);
      std::vector<int64_t> results(static_cast<size_t>(voxels));
      partners.resize(static_cast<size_t>(voxels));
      for (int64_t tap = 0; tap < c.num_taps(); ++tap) {
        const auto count = static_cast<size_t>(pairs.list(tap, first, last, results.data(), partners.data()));
        std::set<std::pair<int64_t, int64_t>> wanted;
        for (size_t i = 0; i < count; ++i) wanted.insert({results[i], partners[i]});
        EXPECT_EQ(found[tap], wanted) << "tap " << tap;
      }
    }
  }
}

}  // namespace
}  // namespace welkin::ops
