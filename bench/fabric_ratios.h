// SPDX-License-Identifier: Apache-2.0
// The ratios of `cairn bench fabric`: computed from what the contestants did, and from nothing
// else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/contest.h"
#include "bench/report.h"

namespace cairn::bench {

// Contestants by name. A load is "KIND_qdDEPTH" unless it is one of these.
namespace fabric_names {
// Variants.
inline constexpr std::string_view kBare = "bare";
inline constexpr std::string_view kPolling = "cairn";
inline constexpr std::string_view kSleeping = "cairn_sleeping";
inline constexpr std::string_view kFixed = "fixed_sleeping";
inline constexpr std::string_view kNapping = "cairn_napping";
inline constexpr std::string_view kDefault = "cairn_default";
inline constexpr std::string_view kOff = "off_sleeping";
inline constexpr std::string_view kDigests = "digests_sleeping";
// A load at a rate, and its rate.
inline constexpr std::string_view kPaced = "read4k_50k";
inline constexpr double kPacedRate = 50'000;
// One connection or a thousand, at one total depth; with batching, and without.
inline constexpr std::string_view kConnections = "read4k_qd1000";
inline constexpr std::string_view kOneConnection = "connections1";
inline constexpr std::string_view kManyConnections = "connections1000";
inline constexpr std::string_view kOneConnectionOff = "connections1_off";
inline constexpr std::string_view kManyConnectionsOff = "connections1000_off";
// One target or 48, at one total depth.
inline constexpr std::string_view kTargetsRead = "read4k_qd768";
inline constexpr std::string_view kTargetsWrite = "write4k_qd768";
inline constexpr std::string_view kOneTarget = "targets1";
inline constexpr std::string_view kManyTargets = "targets48";
// A host that the box knows, alone and next to so many hostile connections.
inline constexpr std::string_view kFriend = "friend_read4k_qd1";
inline constexpr std::string_view kQuiet = "quiet";
inline constexpr uint32_t kStrangerCounts[] = {1, 10, 100, 1000};
std::string among_strangers(uint32_t count);  // the variant
}  // namespace fabric_names

// How much of the due requests must have been done at the rate, for its cost to mean anything.
inline constexpr double kPacedShareMin = 0.98;

// How many times its quiet p99 a friend's p99 is once strangers have slowed it.
inline constexpr double kSlowedFactor = 10;

// Every ratio whose contestants took part. docs/performance.md says what each means. A rate that
// was not kept gives no ratio but a sentence under its name in `skipped`. Where no number of
// strangers slowed the friend, the largest stands for it, and the result of the same name has
// threshold_reached 0.
void add_fabric_ratios(const Contest& contest, Report& report);

}  // namespace cairn::bench
