// SPDX-License-Identifier: Apache-2.0
// Leg: a drive with a part of the data of a redundant service, and its state.
//
// Labels of all legs name the same members, and count generations. A leg that fails is *stale* from
// the generation whose labels, on the other legs, said so first.
//
// Labels are written leg by leg, so a crash leaves good legs that lack the newest one. A leg that
// lacks two was away meanwhile, and its data is not trusted. So opening first writes the newest
// label, unchanged, to the legs that lack it, and only then writes the next one: however often
// power fails between two legs, no leg comes to lack two.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "drive/drive.h"

namespace cairn::drive {

struct Leg {
  enum class State : uint8_t {
    kGood,     // has all data: read and written
    kCopying,  // gets what it lacks: written
    kLost,     // failed, or is not there
  };
  std::unique_ptr<Drive> drive;  // null: not there
  State state = State::kLost;
  uint64_t id = 0;
  uint64_t stale_from = 0;  // the generation; 0: it has all data; kUnsaved: since the next label
  static constexpr uint64_t kUnsaved = UINT64_MAX;
  uint32_t reads = 0;        // in flight
  Incarnation known;         // of the drive when its data was last checked
  uint64_t medium = 0;       // in its label: the medium on which its data was last found good
  bool is_replaced = false;  // the drive was opened anew, and is another medium than the leg's was
  bool lacks_label = false;  // good by the newest label, which it has not got: a crash came first
  bool must_reopen = false;  // the drive is closed, and did not open again

  // Whether the drive may have other data than when it was checked: it lost unflushed writes, or is
  // another drive.
  bool has_changed() const;
  // Its data has been checked now.
  void remember() {
    known = drive->incarnation();
    if (medium == 0) medium = known.medium;
  }
};

// A leg as labels name it.
struct LegMember {
  uint64_t id = 0;
  uint64_t stale_from = 0;  // the generation since which it lacks something; 0: it has all data
  friend bool operator==(const LegMember&, const LegMember&) = default;
};

// What the labels say of one leg: the newest of all, and the leg's own.
struct LegClaims {
  uint64_t newest_generation = 0;
  uint64_t stale_from = 0;  // by the newest label
  uint64_t own_generation = 0;
  uint64_t own_stale_from = 0;  // by its own
};
enum class LegVerdict : uint8_t {
  kGood,
  kStale,         // it lacks later writes
  kMissedLabels,  // it should be good, but lacks labels: do not trust its data
  kSplitBrain,    // it was used without the others, and they without it
};
LegVerdict judge_leg(const LegClaims& claims);

// Whether an error of a leg says something about the leg, not about the request.
bool blames_leg(const Error& error);
// Whether it says that nobody answered in time.
inline bool is_silent(const Error& error) {
  return error == Errc::kUnreachable || error == Errc::kTimedOut;
}

}  // namespace cairn::drive
