// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/convolution_gathered.h"

#include <algorithm>
#include <vector>

namespace welkin::ops {
namespace gathered_detail {

constexpr int64_t kRowBlock = 32;  // rows are multiplied in blocks; there is memory for whole ones

template <typename T>
struct GatheredScratch {
  std::vector<int64_t> voxels, partners;
  std::vector<std::vector<const T*>> rows;  // by piece
  std::vector<TapPiece<T>> pieces;
  AlignedBuffer<T> gathered, panel;
  AlignedBuffer<float> sums;
};

template <typename T>
GatheredScratch<T>& gathered_scratch() {
  static thread_local GatheredScratch<T> scratch;
  return scratch;
}

// Location of a piece's weights.
struct PieceSource {
  size_t part;
  int64_t tap, begin, depth_begin;  // channels of the part, and of all channels
};

// One group of voxels of a task.
template <typename T, typename S>
class GroupMatmul {
 public:
  GroupMatmul(const TapPanels<T, S>& panels, PanelRange panels_of_task, GatheredScratch<T>& scratch)
      : panels_(panels), range_(panels_of_task), scratch_(scratch), count_(static_cast<int64_t>(scratch.voxels.size())) {
    scratch_.pieces.clear();
    scratch_.gathered.reserve(padded(count_, kRowBlock) * kGatheredRow);
    if (!is_packed()) scratch_.panel.reserve(kGatheredDepth * kChannelPanel);
    panels_.begin_sums(range_, count_, scratch_.sums.reserve(panels_.sums_at(range_.size(), count_)));
  }

  // Takes one tap, whose partners are in the scratch memory, by blocks of channels.
  void add_tap(int64_t tap) {
    int64_t depth_begin = 0;
    for (size_t part = 0; part < panels_.parts.size(); ++part) {
      const BoxView<T>& box = panels_.parts[part].box;
      for (int64_t begin = 0; begin < box.channels; begin += kDepthBlock) {
        const int64_t depth = std::min(kDepthBlock, box.channels - begin);
        if (depth_ + depth > kGatheredDepth) multiply();
        add_piece({part, tap, begin, depth_begin + begin}, depth);
      }
      depth_begin += box.channels;
    }
  }

  // Multiplies the taken pieces.
  void multiply() {
    if (sources_.empty()) return;
    const GatheredRows<T>& kernel = *panels_.kernel.gathered;
    kernel.gather(scratch_.pieces.data(), num_pieces(), count_, scratch_.gathered.data());
    for (int64_t panel = range_.begin; panel < range_.end; ++panel) {
      find_weights(panel);
      kernel.add_matmul(scratch_.gathered.data(), count_, scratch_.pieces.data(), num_pieces(),
                        scratch_.sums.data() + panels_.sums_at(panel - range_.begin, count_), panels_.panel_width(panel));
    }
    sources_.clear();
    scratch_.pieces.clear();
    depth_ = 0;
  }

  void finish(const ResultLines<S>& result) const {
    for (int64_t panel = range_.begin; panel < range_.end; ++panel) {
      const int64_t columns = panels_.panel_width(panel);
      const float* from = scratch_.sums.data() + panels_.sums_at(panel - range_.begin, count_);
      for (const int64_t voxel : scratch_.voxels) {
        panels_.kernel.activate(from, panels_.end.slope, columns, result.at(voxel) + panel * kChannelPanel);
        from += columns;
      }
    }
  }

 private:
  bool is_packed() const { return panels_.packed.data() != nullptr; }
  int64_t num_pieces() const { return static_cast<int64_t>(sources_.size()); }

  void add_piece(const PieceSource& source, int64_t depth) {
    const size_t piece = sources_.size();
    if (scratch_.rows.size() == piece) scratch_.rows.emplace_back();
    std::vector<const T*>& rows = scratch_.rows[piece];
    find_partner_rows(panels_.parts[source.part].box, source.begin, scratch_.partners, rows);
    sources_.push_back(source);
    scratch_.pieces.push_back({rows.data(), depth, nullptr});
    depth_ += depth;
  }

  // Weights that are not packed are read in place.
  void find_weights(int64_t panel) {
    T* room = scratch_.panel.data();
    for (size_t p = 0; p < sources_.size(); ++p) {
      const PieceSource& source = sources_[p];
      TapPiece<T>& piece = scratch_.pieces[p];
      if (is_packed()) {
        piece.panel = panels_.packed_at(panel, source.tap, source.depth_begin);
        continue;
      }
      panels_.pack(panels_.parts[source.part], source.tap, source.begin, panel, room);
      piece.panel = room;
      room += piece.depth * kChannelPanel;
    }
  }

  const TapPanels<T, S>& panels_;
  PanelRange range_;
  GatheredScratch<T>& scratch_;
  int64_t count_;
  int64_t depth_ = 0;
  std::vector<PieceSource> sources_;
};

}  // namespace gathered_detail

using namespace gathered_detail;

template <typename T, typename S>
void gathered_matmuls(const TapPanels<T, S>& panels, const TapGroups& groups, int64_t first_line, int64_t last_line,
                      PanelRange panels_of_task, const ResultLines<S>& result) {
  GatheredScratch<T>& scratch = gathered_scratch<T>();
  for (int64_t group = 0; group < groups.num_groups(); ++group) {
    groups.voxels(group, first_line, last_line, scratch.voxels);
    if (scratch.voxels.empty()) continue;
    GroupMatmul<T, S> matmul(panels, panels_of_task, scratch);
    for (const int64_t tap : groups.taps(group)) {
      groups.partners(group, tap, first_line, last_line, scratch.partners);
      const bool any = std::any_of(scratch.partners.begin(), scratch.partners.end(), [](int64_t p) { return p >= 0; });
      if (any) matmul.add_tap(tap);
    }
    matmul.multiply();
    matmul.finish(result);
  }
}

template void gathered_matmuls(const TapPanels<float, float>&, const TapGroups&, int64_t, int64_t, PanelRange,
                               const ResultLines<float>&);
template void gathered_matmuls(const TapPanels<float, Bf16>&, const TapGroups&, int64_t, int64_t, PanelRange,
                               const ResultLines<Bf16>&);
template void gathered_matmuls(const TapPanels<Bf16, Bf16>&, const TapGroups&, int64_t, int64_t, PanelRange,
                               const ResultLines<Bf16>&);

}  // namespace welkin::ops
