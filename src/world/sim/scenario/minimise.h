// SPDX-License-Identifier: Apache-2.0
// minimise: a smallest part of a list that still has a property, found by trying (ddmin).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cairn::sim {

// `fails(items)` must hold. Returns a sublist, in the same order, for which it still holds and no
// longer would without any one of its members. Each trial is one call: O(log n) of them when one
// member is the cause, O(n^2) at worst. After Zeller and Hildebrandt, "Simplifying and Isolating
// Failure-Inducing Input", 2002.
template <class T, class Fails>
std::vector<T> minimise(std::vector<T> items, Fails fails) {
  size_t parts = 2;
  while (items.size() > 1) {
    const size_t chunk = (items.size() + parts - 1) / parts;
    bool is_reduced = false;
    // First each part alone, which finds a single cause fast; then all without each part, which
    // with two parts is the same.
    for (const bool is_alone : {true, false}) {
      if (!is_alone && parts == 2) continue;
      for (size_t start = 0; start < items.size() && !is_reduced; start += chunk) {
        const size_t end = std::min(start + chunk, items.size());
        std::vector<T> trial;
        for (size_t i = 0; i < items.size(); ++i) {
          if ((i >= start && i < end) == is_alone) trial.push_back(items[i]);
        }
        if (trial.size() == items.size() || !fails(trial)) continue;
        items = std::move(trial);
        parts = is_alone ? 2 : std::max<size_t>(parts - 1, 2);
        is_reduced = true;
      }
      if (is_reduced) break;
    }
    if (is_reduced) continue;
    if (chunk == 1) break;
    parts = std::min(parts * 2, items.size());
  }
  // The empty list last: a failure that needs nothing at all.
  if (items.size() == 1 && fails(std::vector<T>{})) items.clear();
  return items;
}

}  // namespace cairn::sim
