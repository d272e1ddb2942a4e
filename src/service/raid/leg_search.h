// SPDX-License-Identifier: Apache-2.0
// Which of the drives that a redundant service was given are its legs, judged by their labels
// before anything is written.
//
// A Label of a service has `id`, the same on all its legs; `generation`; `block_size`;
// `leg_blocks()`, the least a leg has; `membership()`, all legs as it knows them, `own_member()`,
// the one it is on, and `medium`, the number of what that one stands on (base/medium_id.h).
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/medium_id.h"
#include "drive/blank.h"
#include "drive/drive.h"
#include "env/env.h"
#include "service/common/label.h"
#include "service/common/region_set.h"
#include "service/raid/leg.h"
#include "service/raid/leg_reviver.h"
#include "service/raid/legs.h"
#include "task/task.h"

namespace cairn::drive {

// A drive as it was handed in, and what its label says.
template <class Label>
struct Candidate {
  std::unique_ptr<Drive>* drive = nullptr;
  Result<Label> label = fail(Errc::kNotFound, "");  // kNotFound: it is blank
  bool is_there = false;                            // and can be read
  const Geometry& shape() const { return (*drive)->geometry(); }
};
template <class Label>
using Candidates = std::vector<Candidate<Label>>;

// Reads a drive's newest label. kNotFound: it is blank; kInvalid, kCorrupt, kUnsupported: it holds
// something else; others: it cannot be read.
template <class Label>
using ReadLabel = task::Task<Result<Label>> (*)(env::Env&, Drive&, task::CancelToken);

inline bool is_foreign(const Error& error) {
  return error == Errc::kInvalid || error == Errc::kCorrupt || error == Errc::kUnsupported;
}

// What a drive is by its label. kNotFound: it is blank, or may be lost; not_blank(), with its
// number: neither; other errors as those of `read`.
template <class Label>
task::Task<Result<Label>> judge_label(env::Env& env, Drive& drive, LabelTerms terms,
                                      ReadLabel<Label> read, task::CancelToken token) {
  Result<Label> label = co_await read(env, drive, token);
  if (label) co_return label;
  const bool is_other = label.error() == Errc::kInvalid;
  if (!is_other && label.error() != Errc::kNotFound) co_return label;
  if (terms.may_format) co_return fail(Errc::kNotFound, "it may be lost");
  if (is_other) co_return fail(not_blank(terms.number));
  const Result<void> blank = co_await check_blank(env, drive, terms.number, token);
  if (!blank) co_return fail(blank.error());
  co_return label;
}

// One candidate for each drive. An error: a drive holds something else, unless it may be lost; or
// none can be read.
template <class Label>
task::Task<Result<Candidates<Label>>> read_labels(env::Env& env,
                                                  std::vector<std::unique_ptr<Drive>>& below,
                                                  bool may_format, ReadLabel<Label> read) {
  Candidates<Label> candidates;
  for (std::unique_ptr<Drive>& drive : below) {
    Candidate<Label> one{.drive = &drive};
    if (drive != nullptr) {
      const LabelTerms terms{.may_format = may_format,
                             .number = static_cast<int32_t>(candidates.size() + 1)};
      one.label = co_await judge_label(env, *drive, terms, read, env.stop_token());
      if (!one.label && is_foreign(one.label.error())) co_return fail(one.label.error());
      one.is_there = one.label || one.label.error() == Errc::kNotFound;
    }
    candidates.push_back(std::move(one));
  }
  if (std::ranges::none_of(candidates, &Candidate<Label>::is_there)) {
    co_return fail(Errc::kUnreachable, "none of its drives can be read");
  }
  co_return candidates;
}

// Null: there never were legs. Those of the first generation are blank, or were when a crash
// stopped their making.
template <class Label>
const Label* newest_label(const Candidates<Label>& candidates) {
  const Label* newest = nullptr;
  for (const Candidate<Label>& one : candidates) {
    if (one.label && (newest == nullptr || one.label->generation > newest->generation)) {
      newest = &*one.label;
    }
  }
  return newest == nullptr || newest->generation == 1 ? nullptr : newest;
}

// All drives are there: the first `count` become legs, the others spares.
template <class Label>
Legs new_legs(env::Env& env, Candidates<Label>& candidates, size_t count) {
  Legs legs;
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::unique_ptr<Drive>& drive = *candidates[i].drive;
    legs.given.push_back(drive.get());
    if (i < count) {
      legs.members.push_back(
          {.drive = std::move(drive), .state = Leg::State::kGood, .id = env.rng().next() | 1});
      legs.members.back().remember();
    } else {
      legs.spares.push_back(std::move(drive));
    }
  }
  return legs;
}

// Whether each drive can be one of those that the newest label names.
template <class Label>
Result<void> check_candidates(const Candidates<Label>& candidates, const Label& newest) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate<Label>& one = candidates[i];
    const auto number = static_cast<int32_t>(i + 1);
    if (!one.is_there) continue;
    if (one.shape().block_size != newest.block_size || one.shape().blocks < newest.leg_blocks()) {
      return fail(Errc::kInvalid, "a drive is smaller than its legs, or has other blocks; drive",
                  number);
    }
    if (!one.label) continue;
    if (one.label->id != newest.id) {
      return fail(Errc::kInvalid, "the drives belong to different stacks; one that differs",
                  number);
    }
    for (size_t k = 0; k < i; ++k) {
      const Result<Label>& other = candidates[k].label;
      if (other && other->own_member().id == one.label->own_member().id) {
        return fail(Errc::kInvalid, "two drives are copies of the same leg; the second one",
                    number);
      }
    }
  }
  return {};
}

// What becomes of a leg, by the newest label and by its own if it is there (`own` is not null).
// Where it lacks more than labels say, all regions are `missed`.
template <class Label>
Result<Leg> judge_member(const Label& newest, size_t index, const Label* own, bool degraded,
                         RegionSet& missed) {
  const LegMember& member = newest.membership()[index];
  const auto number = static_cast<int32_t>(index + 1);
  Leg leg{.id = member.id, .stale_from = member.stale_from};
  if (own == nullptr) {
    if (leg.stale_from == 0 && !degraded) {
      return fail(Errc::kUnreachable,
                  "a leg is missing that may have newer data: bring it back, or say degraded=yes "
                  "to go on without it; leg",
                  number);
    }
    if (leg.stale_from == 0) leg.stale_from = Leg::kUnsaved;
    return leg;
  }
  switch (judge_leg({.newest_generation = newest.generation,
                     .stale_from = leg.stale_from,
                     .own_generation = own->generation,
                     .own_stale_from = own->own_member().stale_from})) {
    case LegVerdict::kGood:
      leg.state = Leg::State::kGood;
      leg.lacks_label = own->generation < newest.generation;
      break;
    case LegVerdict::kStale:
      leg.state = Leg::State::kCopying;
      break;
    case LegVerdict::kMissedLabels:
      leg.state = Leg::State::kCopying;
      leg.stale_from = Leg::kUnsaved;
      missed.add_all();
      break;
    case LegVerdict::kSplitBrain:
      return fail(Errc::kInvalid,
                  "split brain: legs were written without each other. Choose those to go on with, "
                  "and discard the first 64K of the others to copy to them; such a leg is",
                  number);
  }
  return leg;
}

struct LegTerms {
  bool degraded = false;  // goes on without a leg that may have newer data
  bool moved = false;     // what legs hold was copied to other media
  size_t good_min = 1;    // legs with all data
};

// A leg's label stands on the first of its drives. Another of them may have come back empty since:
// then nothing that it holds counts.
template <class Label>
void check_medium(const Label& own, bool moved, Leg& leg) {
  if (moved || !is_other_medium(own.medium, leg.known.medium)) return;
  leg.is_replaced = true;
  leg.state = Leg::State::kLost;
  if (leg.stale_from == 0) leg.stale_from = Leg::kUnsaved;
}

// Whether enough of them have all data.
inline Result<void> check_good(const Legs& legs, size_t good_min) {
  if (legs.count(Leg::State::kGood) >= good_min) return {};
  const auto replaced = std::ranges::find(legs, true, &Leg::is_replaced);
  if (replaced == legs.end()) {
    return fail(Errc::kUnreachable,
                "too few legs that are there have all data: bring back the others; it takes",
                static_cast<int32_t>(good_min));
  }
  return fail(Errc::kUnreachable,
              "too few legs have all data: drives of some are not those they were, as memory that "
              "came back empty. Bring back those that were, or say moved=yes if you copied what "
              "they held; such a leg is",
              static_cast<int32_t>(replaced - legs.begin() + 1));
}

// The legs that the newest label names, with their drives; others that are there are spares. On
// failure no drive was taken.
template <class Label>
Result<Legs> match_legs(Candidates<Label>& candidates, const Label& newest, const LegTerms& terms,
                        RegionSet& missed) {
  if (Result<void> fit = check_candidates(candidates, newest); !fit) return fail(fit.error());
  Legs legs;
  std::vector<Candidate<Label>*> chosen;  // by leg; null: not there
  for (size_t i = 0; i < newest.membership().size(); ++i) {
    const auto at = std::ranges::find_if(candidates, [&](const Candidate<Label>& one) {
      return one.label && one.label->own_member().id == newest.membership()[i].id;
    });
    chosen.push_back(at == candidates.end() ? nullptr : &*at);
    const Label* own = chosen.back() == nullptr ? nullptr : &*chosen.back()->label;
    Result<Leg> leg = judge_member(newest, i, own, terms.degraded, missed);
    if (!leg) return fail(leg.error());
    if (own != nullptr) {
      leg->known = (*chosen.back()->drive)->incarnation();
      leg->medium = leg->known.medium;
      check_medium(*own, terms.moved, *leg);
    }
    legs.members.push_back(std::move(*leg));
  }
  if (Result<void> enough = check_good(legs, terms.good_min); !enough) return fail(enough.error());
  for (size_t i = 0; i < candidates.size(); ++i) {
    legs.given.push_back(candidates[i].drive->get());
    if (!candidates[i].is_there) legs.absent.push_back({i, std::move(*candidates[i].drive)});
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] == nullptr) continue;
    legs[i].drive = std::move(*chosen[i]->drive);
  }
  for (Candidate<Label>& one : candidates) {
    if (*one.drive != nullptr) legs.spares.push_back(std::move(*one.drive));
  }
  return legs;
}

// What becomes of a drive that was absent, now that its label was read or could not be. A leg that
// is lost gets it, to be revived; a blank one is a spare.
template <class Label>
Newcomer take_in(std::unique_ptr<Drive>& drive, const Result<Label>& found, const Label& newest,
                 bool moved, Legs& legs) {
  if (!found && found.error() != Errc::kNotFound) {
    return is_foreign(found.error()) ? Newcomer::kForeign : Newcomer::kSilent;
  }
  const Geometry& shape = drive->geometry();
  if (shape.block_size != newest.block_size || shape.blocks < newest.leg_blocks()) {
    return Newcomer::kForeign;
  }
  if (!found) {
    legs.spares.push_back(std::move(drive));
    return Newcomer::kTaken;
  }
  if (found->id != newest.id) return Newcomer::kForeign;
  const auto lost = std::ranges::find(legs, found->own_member().id, &Leg::id);
  if (lost == legs.end() || lost->drive != nullptr) return Newcomer::kForeign;
  lost->drive = std::move(drive);
  lost->remember();
  check_medium(*found, moved, *lost);
  return Newcomer::kTaken;
}

}  // namespace cairn::drive
