// SPDX-License-Identifier: Apache-2.0
#include "observe/timeline/timeline_picture.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "core/text.h"
#include "observe/plot/markup.h"

namespace welkin::observe {
namespace {

using Pieces = std::vector<std::pair<double, double>>;  // [begin, end), sorted and disjoint

constexpr double kPictureWidth = 1200, kLeft = 160, kRow = 26, kTop = 46;

Pieces merged(Pieces pieces) {
  std::ranges::sort(pieces);
  Pieces joined;
  for (const auto& [begin, end] : pieces) {
    if (!joined.empty() && begin <= joined.back().second) {
      joined.back().second = std::max(joined.back().second, end);
    } else if (end > begin) {
      joined.emplace_back(begin, end);
    }
  }
  return joined;
}

double length(const Pieces& pieces) {
  double sum = 0;
  for (const auto& [begin, end] : pieces) sum += end - begin;
  return sum;
}

// The parts of `pieces` outside of all `holes`.
Pieces without(const Pieces& pieces, const Pieces& holes) {
  Pieces rest;
  size_t first = 0;
  for (const auto& [begin, end] : pieces) {
    while (first < holes.size() && holes[first].second <= begin) ++first;
    double from = begin;
    for (size_t i = first; i < holes.size() && holes[i].first < end; ++i) {
      if (holes[i].first > from) rest.emplace_back(from, holes[i].first);
      from = holes[i].second;
    }
    if (from < end) rest.emplace_back(from, end);
  }
  return rest;
}

double common_length(const Pieces& a, const Pieces& b) {
  double sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return sum;
}

struct Frame {
  double begin = 0, end = 0;
  int lane = -1;  // lane of the steps
};

// From the begin of the first step to the end of the last; without steps, of all spans.
Frame frame_of(const TimelineSpans& timeline) {
  Frame steps, all;
  bool is_first = true;
  for (const TimelineSpan& span : timeline.spans) {
    const double begin = span.begin_us, end = span.begin_us + span.length_us;
    all = is_first ? Frame{begin, end, -1} : Frame{std::min(all.begin, begin), std::max(all.end, end), -1};
    is_first = false;
    if (kind_of_span(span.name) != SpanKind::Step) continue;
    steps =
        steps.lane < 0 ? Frame{begin, end, span.lane} : Frame{std::min(steps.begin, begin), std::max(steps.end, end), span.lane};
  }
  return steps.lane < 0 ? all : steps;
}

template <typename Predicate>
Pieces pieces_where(const TimelineSpans& timeline, const Frame& frame, Predicate predicate) {
  Pieces pieces;
  for (const TimelineSpan& span : timeline.spans) {
    if (!predicate(span)) continue;
    pieces.emplace_back(std::max(span.begin_us, frame.begin), std::min(span.begin_us + span.length_us, frame.end));
  }
  return merged(std::move(pieces));
}

std::string fixed_text(double value, const char* format) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string percent(double share) { return fixed_text(100 * share, "%.1f %%"); }

std::string_view color_of(SpanKind kind) {
  static constexpr std::array<std::string_view, 7> kColors{"#eeeeee", "#0072b2", "#e69f00", "#f0e442",
                                                           "#cc79a7", "#d0d0d0", "#999999"};
  return kColors.at(static_cast<size_t>(kind));
}

std::string text_at(double x, double y, std::string_view words) {
  return cat("<text x=\"", fixed_text(x, "%.1f"), "\" y=\"", fixed_text(y, "%.1f"), "\">", escaped_markup(words), "</text>\n");
}

// Longer spans first, so that nested ones are drawn over them. A span that would cover no new pixel of its lane is left out.
std::string rectangles(const TimelineSpans& timeline, const Frame& frame) {
  std::vector<const TimelineSpan*> spans;
  for (const TimelineSpan& span : timeline.spans) spans.push_back(&span);
  std::ranges::stable_sort(spans, [](const TimelineSpan* a, const TimelineSpan* b) { return a->length_us > b->length_us; });
  const double scale = (kPictureWidth - kLeft - 10) / std::max(1.0, frame.end - frame.begin);
  std::vector<std::vector<bool>> thin(timeline.lanes.size(), std::vector<bool>(static_cast<size_t>(kPictureWidth) + 1));
  std::string svg;
  for (const TimelineSpan* span : spans) {
    const double begin = std::max(span->begin_us, frame.begin), end = std::min(span->begin_us + span->length_us, frame.end);
    if (end <= begin) continue;
    const double x = kLeft + (begin - frame.begin) * scale, width = (end - begin) * scale;
    if (width < 1) {
      auto&& pixel = thin[static_cast<size_t>(span->lane)][static_cast<size_t>(x)];
      if (pixel) continue;
      pixel = true;
    }
    const double inset = kind_of_span(span->name) == SpanKind::Step ? 0 : 3;
    svg += cat("<rect x=\"", fixed_text(x, "%.2f"), "\" y=\"", fixed_text(kTop + kRow * span->lane + inset, "%.1f"),
               "\" width=\"", fixed_text(std::max(width, 0.5), "%.2f"), "\" height=\"", fixed_text(kRow - 4 - 2 * inset, "%.1f"),
               "\" fill=\"", color_of(kind_of_span(span->name)), "\"><title>", escaped_markup(span->name), " ",
               fixed_text(span->length_us / 1000, "%.3f"), " ms</title></rect>\n");
  }
  return svg;
}

std::string legend(double y) {
  static constexpr std::array<std::pair<SpanKind, std::string_view>, 6> kRows{{{SpanKind::Compute, "computing"},
                                                                               {SpanKind::Read, "reading"},
                                                                               {SpanKind::Copy, "waiting for data, copying"},
                                                                               {SpanKind::Communication, "communication"},
                                                                               {SpanKind::Profiler, "the profiler's own time"},
                                                                               {SpanKind::Other, "other"}}};
  std::string svg;
  double x = kLeft;
  for (const auto& [kind, words] : kRows) {
    svg += cat("<rect x=\"", fixed_text(x, "%.0f"), "\" y=\"", fixed_text(y - 10, "%.0f"),
               "\" width=\"12\" height=\"12\" fill=\"", color_of(kind), "\"/>\n", text_at(x + 18, y, words));
    x += 40 + 7.0 * static_cast<double>(words.size());
  }
  return svg;
}

}  // namespace

SpanKind kind_of_span(std::string_view name) {
  const auto begins = [&](std::string_view word) { return name.substr(0, word.size()) == word; };
  if (begins("step ")) return SpanKind::Step;
  if (begins("read")) return SpanKind::Read;
  if (begins("data copy in") || begins("fetch")) return SpanKind::Copy;
  if (name == "reduce") return SpanKind::Compute;  // the rest of a reduction: its collectives have their own spans
  for (const char* word : {"forward", "backward", "optimizer", "validation"}) {
    if (begins(word)) return SpanKind::Compute;
  }
  for (const char* word : {"all_", "reduce_scatter", "broadcast", "send", "receive", "barrier", "gradient exchange"}) {
    if (begins(word)) return SpanKind::Communication;
  }
  return name == "profiler" ? SpanKind::Profiler : SpanKind::Other;
}

TimelineShares timeline_shares(const TimelineSpans& timeline) {
  const Frame frame = frame_of(timeline);
  const Pieces recording =
      pieces_where(timeline, frame, [](const TimelineSpan& span) { return kind_of_span(span.name) == SpanKind::Profiler; });
  const double time = frame.end - frame.begin - length(recording);
  if (frame.lane < 0 || time <= 0) return {};
  const auto of_kind = [&](SpanKind kind, bool anywhere) {
    const auto is_meant = [&](const TimelineSpan& span) {
      return kind_of_span(span.name) == kind && (anywhere || span.lane == frame.lane);
    };
    return without(pieces_where(timeline, frame, is_meant), recording);
  };
  const Pieces working = of_kind(SpanKind::Compute, false), reading = of_kind(SpanKind::Read, true);
  const Pieces talking = of_kind(SpanKind::Communication, true), waiting = of_kind(SpanKind::Communication, false);
  Pieces busy = working;
  busy.insert(busy.end(), waiting.begin(), waiting.end());
  const auto hidden = [](const Pieces& pieces, const Pieces& behind) {
    return pieces.empty() ? 0.0 : common_length(pieces, behind) / length(pieces);
  };
  return {.seconds = time * 1e-6,
          .profiler_seconds = length(recording) * 1e-6,
          .idle = 1 - length(merged(std::move(busy))) / time,
          .reading = length(reading) / time,
          .reading_hidden = hidden(reading, working),
          .communicating = length(talking) / time,
          .communication_hidden = hidden(talking, without(working, waiting))};
}

std::string shares_line(const TimelineShares& shares) {
  std::string line = cat("idle ", percent(shares.idle), " of ", fixed_text(shares.seconds, "%.3f"), " s; reading ",
                         percent(shares.reading), ", of which ", percent(shares.reading_hidden), " behind computing");
  if (shares.communicating > 0) {
    line += cat("; communication ", percent(shares.communicating), ", of which ", percent(shares.communication_hidden),
                " behind computing");
  }
  if (shares.profiler_seconds > 0) {
    line += cat("; the profiler's own ", fixed_text(shares.profiler_seconds, "%.3f"), " s are not counted");
  }
  return line;
}

std::string timeline_svg(const TimelineSpans& timeline) {
  const Frame frame = frame_of(timeline);
  const double height = kTop + kRow * static_cast<double>(timeline.lanes.size()) + 50;
  std::string svg =
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kPictureWidth, "\" height=\"", height,
          "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
          text_at(kLeft, 20, shares_line(timeline_shares(timeline))));
  for (size_t lane = 0; lane < timeline.lanes.size(); ++lane)
    svg += text_at(8, kTop + kRow * static_cast<double>(lane) + 15, timeline.lanes[lane]);
  svg += rectangles(timeline, frame);
  const double below = kTop + kRow * static_cast<double>(timeline.lanes.size()) + 14;
  svg += text_at(kLeft, below, "0 ms") +
         text_at(kPictureWidth - 90, below, cat(fixed_text((frame.end - frame.begin) / 1000, "%.1f"), " ms"));
  return svg + legend(below + 22) + "</svg>\n";
}

}  // namespace welkin::observe
