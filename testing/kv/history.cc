// SPDX-License-Identifier: Apache-2.0
#include "testing/kv/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/rng.h"

namespace cairn::kv {

namespace {

constexpr int32_t kNothing = -1;

// A key as one-at-a-time execution would have it. A version of 0 is one that nobody was told yet.
struct State {
  int32_t value = kNothing;
  uint64_t version = 0;
  friend bool operator==(const State&, const State&) = default;
};

struct SearchOp {
  const KeyOp* op = nullptr;
  int32_t value = kNothing;  // of op->value
  uint64_t mark = 0;         // what it adds to the identity of a set
  bool only_reads = false;   // by what was said
};

bool only_reads(const KeyOp& op) {
  if (!op.ended) return false;
  if (op.kind == KeyOp::Kind::kAdd) return op.was_error;
  return op.kind == KeyOp::Kind::kGet || (op.kind != KeyOp::Kind::kPut && !op.done);
}

class Values {
 public:
  int32_t id(const std::string& text) {
    const auto [found, is_new] = ids_.try_emplace(text, static_cast<int32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return found->second;
  }
  const std::string& text(int32_t id) const { return texts_[static_cast<size_t>(id)]; }

 private:
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<std::string> texts_;
};

std::optional<int64_t> number_of(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

bool agrees(State& state, uint64_t version) {
  if (version == 0) return true;
  if (state.version == 0) state.version = version;
  return state.version == version;
}

// A search for an order of one key's operations. Events lie in one list, by time: the beginning of
// each operation, and its end if that is known.
class Search {
 public:
  Search(const std::vector<KeyOp>& ops, const CheckOptions& options)
      : steps_max_(options.steps_max) {
    Rng rng(ops.size() + 1);
    for (const KeyOp& op : ops) {
      SearchOp each{.op = &op, .mark = rng.next(), .only_reads = only_reads(op)};
      const bool has_value = op.kind != KeyOp::Kind::kGet || op.done;
      if (has_value) each.value = values_.id(op.value);
      ops_.push_back(each);
      open_ += op.ended ? 1 : 0;
    }
    make_events();
    if (options.versions_grow) line_up();
  }

  HistoryVerdict::Kind run() {
    while (open_ > 0) {
      if (++steps_ > steps_max_) return HistoryVerdict::Kind::kTooHard;
      if (advance()) continue;
      if (!back()) return HistoryVerdict::Kind::kBad;
    }
    return HistoryVerdict::Kind::kGood;
  }

  uint64_t steps() const { return steps_; }
  std::string stuck_text() const;

 private:
  struct Event {
    int64_t time = 0;
    bool is_end = false;
    uint32_t op = 0;
    uint32_t before = 0;
    uint32_t after = 0;
  };
  static constexpr int kUnknownPass = 2;
  // One operation put behind those before it.
  struct Step {
    uint32_t op = 0;
    uint32_t at = 0;  // where the pass was
    State before;
    bool was_unknown = false;  // whether the last one before it was of those
    int pass = 0;
    int64_t first_end = 0;
  };

  void make_events() {
    std::vector<Event> sorted;
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      const KeyOp& op = *ops_[i].op;
      if (!op.ended) unknown_.push_back(i);
      if (!op.ended) continue;
      sorted.push_back({.time = op.began, .is_end = false, .op = i});
      sorted.push_back({.time = *op.ended, .is_end = true, .op = i});
    }
    // Of one moment, beginnings come first: then the two may have been at once.
    std::ranges::sort(sorted, [](const Event& a, const Event& b) {
      return std::tuple(a.time, a.is_end, a.op) < std::tuple(b.time, b.is_end, b.op);
    });
    events_.resize(1);
    begins_.resize(ops_.size());
    ends_.resize(ops_.size());
    for (const Event& each : sorted) {
      (each.is_end ? ends_ : begins_)[each.op] = static_cast<uint32_t>(events_.size());
      events_.push_back(each);
    }
    const auto count = static_cast<uint32_t>(events_.size());
    for (uint32_t i = 0; i < count; ++i) {
      events_[i].after = (i + 1) % count;
      events_[i].before = (i + count - 1) % count;
    }
    next_ = events_[0].after;
    std::ranges::sort(unknown_, {}, [this](uint32_t i) { return ops_[i].op->began; });
    is_used_.resize(ops_.size());
  }

  // Those that tell a version can only happen in the order of these: the line.
  void line_up() {
    std::vector<uint32_t> sorted;
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].op->ended && ops_[i].op->version != 0) sorted.push_back(i);
    }
    std::ranges::sort(sorted, {}, [this](uint32_t i) { return ops_[i].op->version; });
    line_.assign(ops_.size() + 1, {});
    uint32_t last = line_end();
    for (const uint32_t each : sorted) {
      line_[last].after = each;
      line_[each] = {.before = last, .after = line_end(), .is_in = true};
      last = each;
    }
    line_[last].after = line_end();
    line_[line_end()].before = last;
  }
  uint32_t line_end() const { return static_cast<uint32_t>(ops_.size()); }
  bool is_its_turn(uint32_t op) const {
    if (line_.empty() || !line_[op].is_in) return true;
    return ops_[line_[line_end()].after].op->version == ops_[op].op->version;
  }
  // Somebody is still to see what `after` replaces, which never comes back.
  bool hides_too_early(uint32_t op, const State& after) const {
    if (line_.empty() || state_.version == 0 || after.version == state_.version) return false;
    const uint32_t first = line_[line_end()].after;
    const uint32_t next = first == op ? line_[first].after : first;
    return next != line_end() && ops_[next].op->version <= state_.version;
  }
  void leave_line(uint32_t op) {
    if (line_.empty() || !line_[op].is_in) return;
    line_[line_[op].before].after = line_[op].after;
    line_[line_[op].after].before = line_[op].before;
  }
  void return_to_line(uint32_t op) {
    if (line_.empty() || !line_[op].is_in) return;
    line_[line_[op].before].after = op;
    line_[line_[op].after].before = op;
  }

  void take_out(uint32_t event) {
    events_[events_[event].before].after = events_[event].after;
    events_[events_[event].after].before = events_[event].before;
  }
  void put_back(uint32_t event) {
    events_[events_[event].before].after = event;
    events_[events_[event].after].before = event;
  }

  // Three passes over what may come next. Who changes nothing and can come now may as well do so:
  // wherever it stands in an order that explains all, it can be moved up to here. Then the others
  // whose end is known; then those that perhaps never happened. `next_` and `pass_` say how far
  // that got.
  bool advance() {
    for (; pass_ < kUnknownPass; ++pass_, next_ = events_[0].after) {
      for (; next_ != 0 && !events_[next_].is_end; next_ = events_[next_].after) {
        if (try_op(events_[next_].op)) return true;
      }
      first_end_ = events_[next_].time;
    }
    if (!is_in_unknown_) next_ = 0;
    is_in_unknown_ = true;
    for (; next_ < unknown_.size(); ++next_) {
      const uint32_t op = unknown_[next_];
      if (ops_[op].op->began > first_end_) break;
      if (!is_used_[op] && try_op(op)) return true;
    }
    return false;
  }

  bool try_op(uint32_t index) {
    const SearchOp& op = ops_[index];
    const bool is_unknown = !op.op->ended;
    State after = state_;
    if (!is_its_turn(index)) return false;
    if (!apply(op, after) || (pass_ == 0 && (!op.only_reads || after != state_))) return false;
    // What is not known to have happened changes something that the next one sees, or it may as
    // well be left out.
    if (is_unknown && after == state_) return false;
    if (hides_too_early(index, after)) return false;
    if (last_unknown_ && op.op->kind == KeyOp::Kind::kPut) return false;
    const uint64_t set = set_ ^ op.mark;
    const uint64_t identity = mix64(set ^ mix64(static_cast<uint64_t>(after.value) * 2 +
                                                (is_unknown ? 1 : 0) + mix64(after.version)));
    if (!tried_.insert({set, identity}).second) return false;
    steps_taken_.push_back({.op = index,
                            .at = next_,
                            .before = state_,
                            .was_unknown = last_unknown_,
                            .pass = pass_,
                            .first_end = first_end_});
    leave_line(index);
    state_ = after;
    set_ = set;
    last_unknown_ = is_unknown;
    is_used_[index] = true;
    if (!is_unknown) {
      take_out(begins_[index]);
      take_out(ends_[index]);
      --open_;
    }
    pass_ = 0;
    is_in_unknown_ = false;
    next_ = events_[0].after;
    return true;
  }

  // Takes the last choice back, and what had to follow it.
  bool back() {
    if (steps_taken_.size() > best_.size()) best_ = steps_taken_;
    while (!steps_taken_.empty()) {
      if (undo() != 0) return true;
    }
    return false;
  }

  // The pass of the step.
  int undo() {
    const Step last = steps_taken_.back();
    steps_taken_.pop_back();
    is_used_[last.op] = false;
    if (ops_[last.op].op->ended) {
      put_back(ends_[last.op]);
      put_back(begins_[last.op]);
      ++open_;
    }
    return_to_line(last.op);
    state_ = last.before;
    set_ ^= ops_[last.op].mark;
    last_unknown_ = last.was_unknown;
    pass_ = last.pass;
    first_end_ = last.first_end;
    is_in_unknown_ = pass_ == kUnknownPass;
    next_ = is_in_unknown_ ? last.at + 1 : events_[last.at].after;
    return last.pass;
  }

  bool apply(const SearchOp& each, State& state);

  struct Key {
    uint64_t set;
    uint64_t identity;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.identity; }
  };

  struct InLine {
    uint32_t before = 0;
    uint32_t after = 0;
    bool is_in = false;
  };

  const uint64_t steps_max_;
  Values values_;
  std::vector<SearchOp> ops_;
  std::vector<Event> events_;
  std::vector<uint32_t> begins_;
  std::vector<uint32_t> ends_;
  std::vector<InLine> line_;  // none: versions say nothing; the last one is its end
  State state_;
  uint64_t set_ = 0;  // of the operations that have been put in order
  bool last_unknown_ = false;
  size_t open_ = 0;                // operations with an end that are not in order yet
  std::vector<uint32_t> unknown_;  // operations without an end, by their beginning
  std::vector<bool> is_used_;
  int pass_ = 0;
  bool is_in_unknown_ = false;  // then next_ is a place in unknown_
  int64_t first_end_ = 0;       // what began later cannot come next
  uint32_t next_ = 0;
  std::vector<Step> steps_taken_;
  std::vector<Step> best_;
  std::unordered_set<Key, KeyHash> tried_;
  uint64_t steps_ = 0;
};

bool Search::apply(const SearchOp& each, State& state) {
  const KeyOp& op = *each.op;
  const bool is_known = op.ended.has_value();
  const bool is_there = state.value != kNothing;
  switch (op.kind) {
    case KeyOp::Kind::kGet:
      if (!is_known) return true;
      return op.done == is_there &&
             (!is_there || (state.value == each.value && agrees(state, op.version)));
    case KeyOp::Kind::kPut:
      state = {.value = each.value, .version = op.version};
      return true;
    case KeyOp::Kind::kDelete:
      if (is_known && op.done != is_there) return false;
      if (is_there) state = {.value = kNothing, .version = op.version};
      return true;
    case KeyOp::Kind::kPutNew:
      if (is_known && op.done == is_there) return false;
      if (!is_there) state = {.value = each.value, .version = op.version};
      return true;
    case KeyOp::Kind::kAdd: {
      const std::optional<int64_t> now = is_there ? number_of(values_.text(state.value)) : 0;
      int64_t sum = 0;
      const bool fits = now && !__builtin_add_overflow(*now, op.amount, &sum);
      if (is_known && op.was_error == fits) return false;
      if (!fits) return true;
      if (is_known && op.number != sum) return false;
      state = {.value = values_.id(fmt::format("{}", sum)), .version = op.version};
      return true;
    }
    case KeyOp::Kind::kReplace: {
      // Whoever knows a version has seen it: one that nobody was told is another one, or this.
      const bool may_match = is_there && (state.version == 0 || state.version == op.expected);
      const bool may_differ = !is_there || state.version != op.expected;
      if (is_known && !op.done) return may_differ;
      if (!may_match) return !is_known;
      state = {.value = each.value, .version = op.version};
      return true;
    }
  }
  return false;
}

std::string describe(const KeyOp& op) {
  static constexpr const char* kNames[] = {"get", "put", "delete", "put-new", "add", "replace"};
  std::string text = fmt::format("client {}: {}", op.client, kNames[static_cast<int>(op.kind)]);
  if (op.kind == KeyOp::Kind::kAdd) text += fmt::format(" {}", op.amount);
  if (op.kind == KeyOp::Kind::kReplace) text += fmt::format(" version {} by", op.expected);
  if (!op.value.empty()) text += fmt::format(" '{}'", op.value);
  if (!op.ended) return text + fmt::format(", from {}, with an unknown end", op.began);
  text += fmt::format(" -> {}", op.done ? "yes" : "no");
  if (op.kind == KeyOp::Kind::kAdd) text += fmt::format(" {}", op.number);
  if (op.version != 0) text += fmt::format(" version {}", op.version);
  return text + fmt::format(", {} to {}", op.began, *op.ended);
}

// The longest order that was found, its last part, and what could not follow.
std::string Search::stuck_text() const {
  std::vector<bool> is_in(ops_.size());
  std::string text =
      fmt::format("{} of {} operations have an order, which ends:\n", best_.size(), ops_.size());
  for (size_t i = 0; i < best_.size(); ++i) {
    is_in[best_[i].op] = true;
    if (i + 12 >= best_.size()) text += "  " + describe(*ops_[best_[i].op].op) + "\n";
  }
  std::vector<const KeyOp*> left;
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (!is_in[i] && ops_[i].op->ended) left.push_back(ops_[i].op);
  }
  std::ranges::sort(left, {}, [](const KeyOp* op) { return *op->ended; });
  text += "and then none of:\n";
  for (size_t i = 0; i < left.size() && i < 6; ++i) text += "  " + describe(*left[i]) + "\n";
  size_t shown = 0;
  for (size_t i = 0; i < ops_.size() && shown < 6; ++i) {
    if (is_in[i] || ops_[i].op->ended) continue;
    text += "  " + describe(*ops_[i].op) + "\n";
    ++shown;
  }
  return text;
}

}  // namespace

size_t History::size() const {
  size_t count = 0;
  for (const auto& [key, ops] : keys_) count += ops.size();
  return count;
}

size_t History::ended() const {
  size_t count = 0;
  for (const auto& [key, ops] : keys_) {
    count += static_cast<size_t>(
        std::ranges::count_if(ops, [](const KeyOp& op) { return op.ended.has_value(); }));
  }
  return count;
}

HistoryVerdict History::check(const CheckOptions& options) const {
  HistoryVerdict all;
  for (const auto& [key, ops] : keys_) {
    Search search(ops, options);
    const HistoryVerdict::Kind kind = search.run();
    all.steps += search.steps();
    if (kind == HistoryVerdict::Kind::kGood) continue;
    return {.kind = kind,
            .key = key,
            .text = fmt::format("key '{}': {}", key, search.stuck_text()),
            .steps = all.steps};
  }
  return all;
}

}  // namespace cairn::kv
