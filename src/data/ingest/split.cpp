// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"

namespace welkin::data::ingest {
namespace {

constexpr int64_t kStepsOfAFullYear = 100;
constexpr size_t kShownGaps = 5;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// First times of the validation and the test part.
struct Boundaries {
  int64_t valid = kNever, test = kNever;
};

[[noreturn]] void fail_split(std::string_view what) {
  throw DataError("ingest", cat("the split by time cannot be made: ", what),
                  "Check --valid_from, --valid_last and --valid_fraction (or --test_...)");
}

// First time of a part that ends at `end` (exclusive, index into times): by date, length of time or fraction; kNever when not
// asked for.
int64_t boundary(const std::vector<int64_t>& times, size_t end, const std::string& from, int64_t last, double fraction,
                 Calendar calendar) {
  const int given = (from.empty() ? 0 : 1) + (last > 0 ? 1 : 0) + (fraction > 0 ? 1 : 0);
  if (given > 1) fail_split("a date, a length and a fraction are given for one part");
  if (!from.empty()) return parse_date(from, calendar);
  if (last > 0) return times[end - 1] - last + 1;
  if (!(fraction >= 0 && fraction < 1)) fail_split(cat("fraction=", fraction));
  if (fraction == 0) return kNever;
  const auto count = static_cast<size_t>(std::ceil(fraction * static_cast<double>(times.size())));
  return count < end ? times[end - count] : times.front();
}

Boundaries find_boundaries(const Sequences& sequences, Calendar calendar, const Split& split) {
  std::set<int64_t> distinct;
  for (const auto& sequence : sequences.members) distinct.insert(sequence.times.begin(), sequence.times.end());
  const std::vector<int64_t> times(distinct.begin(), distinct.end());
  Boundaries result;
  result.test = boundary(times, times.size(), split.test_from, split.test_last, split.test_fraction, calendar);
  const auto before_test = static_cast<size_t>(std::ranges::lower_bound(times, result.test) - times.begin());
  if (before_test == 0) fail_split(cat("nothing lies before the test part: first=", format_date(calendar, times.front())));
  result.valid = boundary(times, before_test, split.valid_from, split.valid_last, split.valid_fraction, calendar);
  const bool reversed = result.test != kNever && result.valid != kNever && result.valid >= result.test;
  if (reversed)
    fail_split(
        cat("valid_from=", format_date(calendar, result.valid), " is not before test_from=", format_date(calendar, result.test)));
  const auto outside = [&](int64_t time) { return time != kNever && (time <= times.front() || time > times.back()); };
  for (const int64_t time : {result.valid, result.test}) {
    if (outside(time)) {
      fail_split(cat("boundary=", format_date(calendar, time), " lies outside the data: first=",
                     format_date(calendar, times.front()), ", last=", format_date(calendar, times.back())));
    }
  }
  return result;
}

Part part_of(int64_t time, const Boundaries& boundaries) {
  if (time >= boundaries.test) return Part::Test;
  return time >= boundaries.valid ? Part::Valid : Part::Train;
}

std::string year_text(int64_t year) {
  if (year < 0 || year > 9999) {
    throw DataError("ingest", cat("a year that has no four digits: year=", year), "Shift the time axis (cdo shifttime)");
  }
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04d", static_cast<int>(year));
  return text.data();
}

std::string numbered(const char* word, int digits, int64_t number) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%s%0*lld_", word, digits, static_cast<long long>(number));
  return text.data();
}

class OutputPlanner {
 public:
  OutputPlanner(const Sequences& sequences, Calendar calendar, const Options& options)
      : sequences_(sequences),
        calendar_(calendar),
        options_(options),
        boundaries_(find_boundaries(sequences, calendar, options.split)) {}

  OutputPlan plan() {
    plan_.step = common_step();
    by_year_ = options_.files == FilePolicy::Year || (options_.files == FilePolicy::Auto && has_full_years());
    for (size_t s = 0; s < sequences_.members.size(); ++s) add_sequence(s);
    require_parts();
    name_files();
    return std::move(plan_);
  }

 private:
  const std::vector<int64_t>& times(size_t sequence) const { return sequences_.members[sequence].times; }

  TimeStep common_step() const {
    const auto longest = std::ranges::max_element(sequences_.members, {}, [](const Sequence& s) { return s.times.size(); });
    return find_step(longest->times, calendar_);
  }

  bool has_full_years() const {
    if (plan_.step.seconds == 0) return false;
    constexpr int64_t kYear = 360 * int64_t{86400};
    return kYear / plan_.step.seconds >= kStepsOfAFullYear;
  }

  void add_sequence(size_t s) {
    const auto gaps = find_gaps(times(s), plan_.step, calendar_);
    note_gaps(s, gaps);
    for (const Segment& segment : find_segments(times(s), plan_.step, calendar_)) add_segment(s, segment);
  }

  void note_gaps(size_t s, const std::vector<Gap>& gaps) {
    if (gaps.empty()) return;
    std::vector<std::string> shown;
    for (size_t i = 0; i < std::min(gaps.size(), kShownGaps); ++i) {
      shown.push_back(cat(format_date(calendar_, gaps[i].after), " to ", format_date(calendar_, gaps[i].before), " (",
                          gaps[i].missing, " missing)"));
    }
    const std::string text = cat("gaps=", gaps.size(), ", step=", describe(plan_.step), ", member=", sequences_.members[s].member,
                                 ": ", join(shown, "; "));
    if (options_.gaps == GapPolicy::Error)
      throw DataError("ingest", cat("the times have gaps: ", text), "Complete the input, or drop --gaps error");
    plan_.notes.push_back(cat("gaps end a file: ", text));
  }

  // Cuts a gapless segment where the part or the year changes.
  void add_segment(size_t s, const Segment& segment) {
    const auto key = [&](int64_t i) {
      const int64_t time = times(s)[static_cast<size_t>(i)];
      return std::pair(part_of(time, boundaries_), by_year_ ? to_date(calendar_, time).year : 0);
    };
    for (int64_t begin = segment.begin; begin < segment.end;) {
      int64_t end = begin + 1;
      while (end < segment.end && key(end) == key(begin)) ++end;
      add_piece(s, begin, end);
      begin = end;
    }
  }

  void add_piece(size_t s, int64_t begin, int64_t end) {
    const int64_t time = times(s)[static_cast<size_t>(begin)];
    const Part part = part_of(time, boundaries_);
    if (end - begin < options_.min_steps) {
      plan_.notes.push_back(cat("left out: a piece of ", end - begin, " steps at ", format_date(calendar_, time),
                                ", member=", sequences_.members[s].member, " (--min_steps ", options_.min_steps, ")"));
      return;
    }
    plan_.files.push_back({part, year_text(to_date(calendar_, time).year), s, begin, end});
  }

  void require_parts() const {
    const auto has = [&](Part part) {
      return std::ranges::any_of(plan_.files, [&](const OutputFile& f) { return f.part == part; });
    };
    const auto require = [&](Part part) {
      if (has(part)) return;
      throw DataError("ingest", cat("no gapless piece is long enough: part=", name_of(part), ", min_steps=", options_.min_steps),
                      "Move the split, or lower --min_steps (single states make no pair of input and target)");
    };
    require(Part::Train);
    if (boundaries_.valid != kNever) require(Part::Valid);
    if (boundaries_.test != kNever) require(Part::Test);
  }

  // "<year>.h5", with the member and the number of the segment before it where that is needed to tell files apart.
  void name_files() {
    std::map<std::string, int64_t> count, used;
    const auto base = [&](const OutputFile& file) {
      const auto& sequence = sequences_.members[file.sequence];
      return cat(name_of(file.part), "/", sequences_.is_ensemble ? numbered("member", 3, sequence.member) : "", file.name);
    };
    for (const OutputFile& file : plan_.files) ++count[base(file)];
    for (OutputFile& file : plan_.files) {
      const std::string key = base(file);
      const std::string segment = count[key] > 1 ? numbered("segment", 4, used[key]++) : "";
      const std::string member = sequences_.is_ensemble ? numbered("member", 3, sequences_.members[file.sequence].member) : "";
      file.name = cat(member, segment, file.name, ".h5");
    }
  }

  const Sequences& sequences_;
  Calendar calendar_;
  const Options& options_;
  Boundaries boundaries_;
  bool by_year_ = false;
  OutputPlan plan_;
};

}  // namespace

std::string_view name_of(Part part) {
  switch (part) {
    case Part::Train:
      return "train";
    case Part::Valid:
      return "valid";
    case Part::Test:
      break;
  }
  return "test";
}

OutputPlan plan_output(const Sequences& sequences, Calendar calendar, const Options& options) {
  return OutputPlanner(sequences, calendar, options).plan();
}

}  // namespace welkin::data::ingest
