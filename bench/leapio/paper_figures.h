// SPDX-License-Identifier: Apache-2.0
// What the simulated parts of the LeapIO paper's Figure 11 are made of: scenes and what they are
// called. paper.cc plays and draws them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/leapio/scene.h"

namespace cairn::bench::leapio {

// One curve: a name as in the paper, and the scene behind it.
struct Line {
  std::string_view name;
  Scene scene;
};

struct Figure {
  std::string_view name;
  std::string_view title;
  std::string_view paper;  // what the paper shows
  std::vector<Line> lines;
};

inline constexpr std::string_view kStripe = "stripe({}, {}, chunk=64K)";
inline constexpr std::string_view kMirror = "mirror({}, {})";

// Lookups per second that Figure 11a tries; the last is that of all other figures.
inline constexpr double kRates[] = {5'000, 20'000, 40'000};
inline constexpr double kFewLookups = kRates[0];
// Of search and batch together as 11c has them, seven requests in eight are reads.
inline constexpr double kMostlyReads = 0.875;

// The stack of `drives` under priority().
std::string with_priority(std::string_view drives);

// Batch beside search under `priority` as the ratios have it, and what their names end with.
struct Contest {
  std::string suffix;
  std::string name;  // in the table; empty: it is there already
  Scene scene;
};
std::vector<Contest> contests();

// Base, +BG and +BG+Prio of one kind of drive.
std::vector<Line> three_lines(const Scene& base);

// 11a to 11e.
std::vector<Figure> all_figures();

}  // namespace cairn::bench::leapio
