// SPDX-License-Identifier: Apache-2.0
// The named axes of the device mesh, and sets of them. Their names are defined only here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace welkin::parallel {

enum class Axis : uint8_t { DpReplicate, DpShard, Tp, Cp, Pp, H, W, D };

inline constexpr size_t kNumAxes = 8;
inline constexpr std::array<std::string_view, kNumAxes> kAxisNames{"dp_replicate", "dp_shard", "tp", "cp", "pp", "h", "w", "d"};

constexpr std::string_view axis_name(Axis axis) { return kAxisNames[static_cast<size_t>(axis)]; }

// A set of axes, for groups over several of them.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(Axis axis) : bits_(uint32_t{1} << static_cast<uint32_t>(axis)) {}  // NOLINT: an axis is a set of one

  constexpr bool contains(Axis axis) const { return (bits_ >> static_cast<uint32_t>(axis) & 1U) != 0; }
  constexpr AxisSet operator|(AxisSet other) const { return AxisSet(bits_ | other.bits_); }
  constexpr bool operator==(const AxisSet&) const = default;

 private:
  constexpr explicit AxisSet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

constexpr AxisSet operator|(Axis a, Axis b) { return AxisSet(a) | AxisSet(b); }
constexpr AxisSet operator|(Axis a, AxisSet b) { return AxisSet(a) | b; }

// "h", or "h x w" of several.
std::string axes_text(AxisSet axes);

// Both kinds of data parallelism.
inline constexpr AxisSet kDp = Axis::DpReplicate | Axis::DpShard;
// The axes that cut a sample into blocks, and all axes along which ranks share a sample's points.
inline constexpr AxisSet kSpatial = Axis::H | Axis::W | Axis::D;
inline constexpr AxisSet kSampleParts = kSpatial | Axis::Cp;

}  // namespace welkin::parallel
