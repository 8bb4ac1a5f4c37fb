// SPDX-License-Identifier: Apache-2.0
#include "observe/image/glyphs.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace welkin::observe::image {
namespace {

// One entry per character from '!' on. A stroke is a letter for its kind, then points, two base-36 digits x y each, on a grid
// where capitals span y = 0..12, small letters 4..12 and descenders reach 16. Kinds: l straight lines; c an open curve; o a
// closed one (quadratic B-splines of the points; open ones begin and end at their end points).
constexpr std::array<std::string_view, 94> kStrokes{
    "l0008 l0c0c",                        // !
    "l0003 l3033",                        // "
    "l301c l705c l0484 l0888",            // #
    "c82700006868c1c0a l404c",            // $
    "l800c o00303404 o58888c5c",          // %
    "c9c24106064070c6c97",                // &
    "l0003",                              // '
    "c30020b3d",                          // (
    "c00323b0d",                          // )
    "l3137 l0266 l6206",                  // *
    "l0787 l434b",                        // +
    "l1b0e",                              // ,
    "l0757",                              // -
    "l0c0c",                              // .
    "l600d",                              // /
    "o00707c0c",                          // 0
    "l13404c",                            // 1
    "c030070760c l0c7c",                  // 2
    "c0210707636 c36767c1c0a",            // 3
    "l5c500878",                          // 4
    "l701006 c0614747c1c0a",              // 5
    "c62500008 o05757c0c",                // 6
    "l00702c",                            // 7
    "o10606616 o06767c0c",                // 8
    "c1a2c7c74 o00707707",                // 9
    "l0505 l0c0c",                        // :
    "l1515 l1b0e",                        // ;
    "l72077c",                            // <
    "l0585 l0989",                        // =
    "l02770c",                            // >
    "c0200606539 l3c3c",                  // ?
    "o44848949 c848acac0000e9e",          // @
    "l0c408c l1878",                      // A
    "l000c c004070764606 c0646868c4c0c",  // B
    "c8370000c7c89",                      // C
    "l000c c0030808c3c0c",                // D
    "l70000c7c l0656",                    // E
    "l70000c l0656",                      // F
    "c8370000c8c87 l8747",                // G
    "l000c l808c l0686",                  // H
    "l000c",                              // I
    "c60686c0c09",                        // J
    "l000c l8008 l358c",                  // K
    "l000c7c",                            // L
    "l0c0059a0ac",                        // M
    "l0c008c80",                          // N
    "o00909c0c",                          // O
    "l000c c004080874707",                // P
    "o00909c0c l599d",                    // Q
    "l000c c004080864606 l468c",          // R
    "c82700006868c1c0a",                  // S
    "l0080 l404c",                        // T
    "c00080c8c8880",                      // U
    "l004c80",                            // V
    "l003c629cc0",                        // W
    "l008c l800c",                        // X
    "l004680 l464c",                      // Y
    "l00800c8c",                          // Z
    "l30000d3d",                          // [
    "l006d",                              // backslash
    "l00303d0d",                          // ]
    "l053165",                            // ^
    "l0e8e",                              // _
    "l0022",                              // `
    "o04747c0c l747c",                    // a
    "l000c o04747c0c",                    // b
    "c7664040c6c7a",                      // c
    "o04747c0c l707c",                    // d
    "l0878 c7874040c6c7a",                // e
    "c5020242c l0454",                    // f
    "o04747c0c c747c7g1g0f",              // g
    "l000c c080474787c",                  // h
    "l040c l0101",                        // i
    "c343c3g0g l3131",                    // j
    "l000c l640a l286c",                  // k
    "c000a0c2c",                          // l
    "l040c c080454585c c5854a4a8ac",      // m
    "l040c c080474787c",                  // n
    "o04747c0c",                          // o
    "l040g o04747c0c",                    // p
    "o04747c0c l747g",                    // q
    "l040c c080454",                      // r
    "c65540408686c1c0b",                  // s
    "c212a2c5c l0454",                    // t
    "c04080c7c78 l747c",                  // u
    "l043c64",                            // v
    "l043c557ca4",                        // w
    "l046c l640c",                        // x
    "l043c l642g",                        // y
    "l04640c6c",                          // z
    "c40202606 c06262d4d",                // {
    "l000e",                              // |
    "c00202646 c46262d0d",                // }
    "c08256986",                          // ~
};

constexpr double kUnitsPerCapital = 12;
constexpr double kSpaceWidth = 4 / kUnitsPerCapital;
constexpr double kDigitWidth = 7 / kUnitsPerCapital;  // of equal width, so that digits line up in axis labels
constexpr int kCurveSteps = 8;

double digit36(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

Point middle(Point a, Point b) { return {(a.x + b.x) / 2, (a.y + b.y) / 2}; }

void append_arc(Polyline& line, Point from, Point control, Point to) {
  for (int step = 0; step <= kCurveSteps; ++step) {
    const double t = static_cast<double>(step) / kCurveSteps, u = 1 - t;
    line.push_back(
        {u * u * from.x + 2 * u * t * control.x + t * t * to.x, u * u * from.y + 2 * u * t * control.y + t * t * to.y});
  }
}

Polyline open_curve(const Polyline& points) {
  Polyline line;
  const size_t last = points.size() - 2;
  for (size_t i = 1; i <= last; ++i) {
    const Point from = i == 1 ? points[0] : middle(points[i - 1], points[i]);
    const Point to = i == last ? points[last + 1] : middle(points[i], points[i + 1]);
    append_arc(line, from, points[i], to);
  }
  return line;
}

Polyline closed_curve(const Polyline& points) {
  Polyline line;
  const size_t n = points.size();
  for (size_t i = 0; i < n; ++i) {
    append_arc(line, middle(points[(i + n - 1) % n], points[i]), points[i], middle(points[i], points[(i + 1) % n]));
  }
  return line;
}

Polyline read_stroke(std::string_view stroke) {
  Polyline points;
  for (size_t i = 1; i + 1 < stroke.size(); i += 2) {
    points.push_back({digit36(stroke[i]) / kUnitsPerCapital, digit36(stroke[i + 1]) / kUnitsPerCapital});
  }
  if (stroke[0] == 'c') return open_curve(points);
  return stroke[0] == 'o' ? closed_curve(points) : points;
}

}  // namespace

Glyph glyph_of(char character) {
  if (character == ' ') return {{}, kSpaceWidth};
  if (character < '!' || character > '~') character = '?';
  std::string_view strokes = kStrokes[static_cast<size_t>(character - '!')];
  Glyph glyph;
  while (!strokes.empty()) {
    const size_t end = std::min(strokes.find(' '), strokes.size());
    glyph.strokes.push_back(read_stroke(strokes.substr(0, end)));
    strokes.remove_prefix(std::min(end + 1, strokes.size()));
  }
  for (const Polyline& line : glyph.strokes) {
    for (const Point& point : line) glyph.width = std::max(glyph.width, point.x);
  }
  if (character >= '0' && character <= '9') glyph.width = kDigitWidth;
  return glyph;
}

}  // namespace welkin::observe::image
