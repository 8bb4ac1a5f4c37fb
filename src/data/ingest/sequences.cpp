// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/sequences.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "data/ingest/time_axis.h"

namespace welkin::data::ingest {
namespace {

constexpr size_t kShownTimes = 3;

// One feed of one member by time.
using TimeTable = std::map<int64_t, int64_t>;  // time -> index of the field

class SequenceSorter {
 public:
  SequenceSorter(const Inventory& inventory, const ChannelPlan& plan, const Options& options)
      : inventory_(inventory), plan_(plan), options_(options), tables_(plan.feeds.size()) {}

  Sequences sort() {
    for (size_t i = 0; i < inventory_.fields.size(); ++i) file_away(static_cast<int64_t>(i));
    check_step();
    if (num_duplicates_ > 0) {
      result_.notes.push_back(cat("duplicates: fields=", num_duplicates_,
                                  ", kept=", options_.duplicates == DuplicatePolicy::First ? "first" : "last"));
    }
    for (const int32_t member : members()) result_.members.push_back(sequence_of(member));
    return std::move(result_);
  }

 private:
  const Variable& variable_of(size_t feed) const { return inventory_.variables[static_cast<size_t>(plan_.feeds[feed].variable)]; }

  void file_away(int64_t index) {
    const Field& field = inventory_.fields[static_cast<size_t>(index)];
    for (size_t feed = 0; feed < plan_.feeds.size(); ++feed) {
      if (plan_.feeds[feed].variable != field.variable || plan_.feeds[feed].level != field.level) continue;
      const bool wanted_time = options_.step == 0 || !variable_of(feed).has_time || field.time % options_.step == 0;
      if (!wanted_time) continue;
      const auto [place, is_new] = tables_[feed][field.member].emplace(field.time, index);
      if (!is_new) resolve_duplicate(place->second, index, feed);
    }
  }

  void resolve_duplicate(int64_t& kept, int64_t index, size_t feed) {
    ++num_duplicates_;
    if (options_.duplicates == DuplicatePolicy::Last) kept = index;
    if (options_.duplicates != DuplicatePolicy::Error) return;
    const Field& first = inventory_.fields[static_cast<size_t>(kept)];
    const Field& second = inventory_.fields[static_cast<size_t>(index)];
    const auto file = [&](const Field& field) {
      return inventory_.files[static_cast<size_t>(field.file)].path.filename().string();
    };
    throw DataError(
        "ingest",
        cat("one field occurs twice: channel=", plan_.feeds[feed].name, ", time=", format_date(plan_.calendar, first.time),
            ", member=", first.member, ", files=", file(first), " ", file(second)),
        "Choose with --duplicates first or --duplicates last, or give fewer files");
  }

  // Throws where --step leaves no time of any variable.
  void check_step() const {
    for (size_t feed = 0; feed < plan_.feeds.size(); ++feed) {
      if (variable_of(feed).has_time && !tables_[feed].empty()) return;
    }
    std::set<int64_t> there;
    for (const Field& field : inventory_.fields) {
      if (std::ranges::find(plan_.feeds, field.variable, &Feed::variable) == plan_.feeds.end()) continue;
      if (inventory_.variables[static_cast<size_t>(field.variable)].has_time) there.insert(field.time);
    }
    const std::vector<int64_t> times(there.begin(), there.end());
    throw DataError("ingest",
                    cat("no time is a multiple of the step: --step=", describe({.seconds = options_.step, .months = 0}),
                        ", first time=", times.empty() ? "none" : format_date(plan_.calendar, times.front()),
                        ", step of the files=", times.size() < 2 ? "none" : describe(find_step(times, plan_.calendar))),
                    "Leave --step out, or give one of which some times are multiples, counted from 00:00");
  }

  // Members that any feed has; those asked for, in that order.
  std::vector<int32_t> members() {
    std::set<int32_t> there;
    for (const auto& table : tables_) {
      if (table.size() == 1 && has_wider_feed()) continue;  // it serves all members
      for (const auto& [member, times] : table) there.insert(member);
    }
    result_.is_ensemble = there.size() > 1;
    if (options_.members.empty()) return {there.begin(), there.end()};
    for (const int32_t member : options_.members) {
      if (there.contains(member)) continue;
      throw DataError("ingest", cat("no such member: member=", member, ", there=", join(there, " ")), "Choose among these");
    }
    return options_.members;
  }

  bool has_wider_feed() const {
    return std::ranges::any_of(tables_, [](const auto& table) { return table.size() > 1; });
  }

  const TimeTable* table_of(size_t feed, int32_t member) const {
    const auto& by_member = tables_[feed];
    if (by_member.size() == 1) return &by_member.begin()->second;
    const auto found = by_member.find(member);
    return found == by_member.end() ? nullptr : &found->second;
  }

  // The field of a feed at a time, -1 when it is not there.
  int64_t field_at(size_t feed, int32_t member, int64_t time) const {
    const TimeTable* table = table_of(feed, member);
    if (table == nullptr || table->empty()) return -1;
    if (!variable_of(feed).has_time) return table->begin()->second;
    const auto found = table->find(time);
    return found == table->end() ? -1 : found->second;
  }

  std::set<int64_t> all_times(int32_t member) const {
    std::set<int64_t> times;
    for (size_t feed = 0; feed < plan_.feeds.size(); ++feed) {
      const TimeTable* table = table_of(feed, member);
      if (table == nullptr || !variable_of(feed).has_time) continue;
      for (const auto& [time, field] : *table) times.insert(time);
    }
    return times;
  }

  Sequence sequence_of(int32_t member) {
    Sequence sequence{.member = member, .times = {}, .fields = {}};
    std::vector<std::string> incomplete;
    for (const int64_t time : all_times(member)) {
      std::vector<int64_t> row;
      for (size_t feed = 0; feed < plan_.feeds.size(); ++feed) {
        row.push_back(field_at(feed, member, time));
        if (row.back() >= 0) continue;
        incomplete.push_back(cat(format_date(plan_.calendar, time), " without ", plan_.feeds[feed].name));
        break;
      }
      if (row.size() != plan_.feeds.size() || row.back() < 0) continue;
      sequence.times.push_back(time);
      sequence.fields.insert(sequence.fields.end(), row.begin(), row.end());
    }
    note_incomplete(member, incomplete, sequence.times.empty());
    return sequence;
  }

  void note_incomplete(int32_t member, std::vector<std::string>& incomplete, bool nothing_left) {
    const size_t count = incomplete.size();
    if (count > kShownTimes) incomplete.resize(kShownTimes);
    if (nothing_left) {
      throw DataError(
          "ingest",
          cat("no time has all channels: member=", member, ", incomplete_times=", count, ", first=", join(incomplete, "; ")),
          "Select channels that share times with --variables, or check --step");
    }
    if (count > 0) {
      result_.notes.push_back(cat("left out: incomplete times=", count, ", member=", member, ", first=", join(incomplete, "; ")));
    }
  }

  const Inventory& inventory_;
  const ChannelPlan& plan_;
  const Options& options_;
  std::vector<std::map<int32_t, TimeTable>> tables_;  // by feed, then member
  int64_t num_duplicates_ = 0;
  Sequences result_;
};

}  // namespace

Sequences sort_sequences(const Inventory& inventory, const ChannelPlan& plan, const Options& options) {
  return SequenceSorter(inventory, plan, options).sort();
}

}  // namespace welkin::data::ingest
