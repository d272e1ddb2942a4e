// SPDX-License-Identifier: Apache-2.0
// The search goes in the logarithm of each knob. Rates and times are refined together by damped
// least squares on differences of trials; counts, and what no point seemed to depend on, are tried
// at other values, with the rest refined again. Every trial uses the same requests, so that drives
// are compared and not noise.
#include "plan/flash/flash_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/flash/least_squares.h"

namespace cairn::plan {

namespace {

using flash::Parameters;

constexpr double kDifference = 0.04;   // of a logarithm, to see what a knob does
constexpr double kStepMax = 1.0;       // of a logarithm, in one refinement
constexpr double kGoodEnough = 0.003;  // error at which nothing is left to look for
constexpr double kWorthIt = 0.97;      // of the cost: what another count must improve
// A knob is told when some number changes at least so much with its logarithm, and when others
// cannot make up for all but such a part of that.
constexpr double kToldMin = 0.05;
constexpr double kIndependenceMin = 0.08;
// What the root of the cost may rise by when a knob that no point tells goes back to its start.
constexpr double kKeepsFactor = 1.01;
constexpr double kKeepsError = 0.005;
constexpr int kSettlings = 3;
constexpr size_t kPromising = 3;  // neighbours that are refined
constexpr double kWorst = 5;      // a logarithm's error counts no more than that

constexpr double kImpossible = 1e9;

struct Trial {
  KnobValues values;
  std::vector<double> errors;  // logarithms of prediction to measurement
  double cost = 0;             // mean of their squares
};

void add_errors(const std::optional<LoadSide>& measured, const std::optional<LoadSide>& predicted,
                std::vector<double>& errors) {
  if (!measured) return;
  const auto add = [&](double ours, double theirs) {
    errors.push_back(std::clamp(std::log(ours / theirs), -kWorst, kWorst));
  };
  if (!predicted) {  // a mix so one-sided that the model saw none
    errors.insert(errors.end(), 2, kWorst);
    return;
  }
  add(predicted->iops, measured->iops);
  add(predicted->mean_ns, measured->mean_ns);
}

class Search {
 public:
  Search(const Parameters& start, std::span<const FioPoint> points, const FitOptions& options)
      : start_(start),
        points_(points),
        options_(options),
        knobs_(fit_knobs()),
        trials_max_(options.trials_max),
        held_(knobs_.size(), false) {}

  std::optional<FlashFit> run() {
    Trial best = tried(knob_values(start_));
    if (best.errors.empty()) return std::nullopt;
    best = scan(best);
    best = refine(best, 5);
    while (!done(best)) {
      const Trial next = refine(look_elsewhere(best), 2);
      const bool better = next.cost < best.cost * kWorthIt;
      if (next.cost < best.cost) best = next;
      if (!better) break;
    }
    best = refine(best, 4);
    for (int i = 0; i < kSettlings; ++i) {
      Trial settled = settle(best);
      if (settled.values == best.values) break;
      best = std::move(settled);
    }
    return report(best);
  }

 private:
  bool spent() const { return trials_ >= trials_max_; }
  bool done(const Trial& best) const { return spent() || best.cost < kGoodEnough * kGoodEnough; }

  KnobValues within_range(KnobValues values) const {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::clamp(values[i], knobs_[i].min, knobs_[i].max);
      if (knobs_[i].is_whole) values[i] = std::round(values[i]);
    }
    return values;
  }

  // Runs every point. Without errors when the drive cannot be filled as asked for.
  Trial tried(KnobValues values) {
    values = within_range(std::move(values));
    if (const auto known = known_.find(values); known != known_.end()) return known->second;
    Trial trial{.values = values};
    const Parameters p = with_knobs(start_, values);
    for (const FioPoint& point : points_) {
      const std::optional<Prediction> found =
          flash::check(p) ? std::nullopt : predict(p, point, options_.load);
      if (!found) {
        trial.errors.clear();
        break;
      }
      add_errors(point.read, found->read, trial.errors);
      add_errors(point.write, found->write, trial.errors);
    }
    trial.cost = cost_of(trial.errors);
    ++trials_;
    lowest_ = std::min(lowest_, trial.cost);
    options_.on_trial(trials_, std::sqrt(lowest_));
    known_.emplace(std::move(values), trial);
    return trial;
  }

  static double cost_of(const std::vector<double>& errors) {
    if (errors.empty()) return kImpossible;
    double sum = 0;
    for (const double error : errors) sum += error * error;
    return sum / static_cast<double>(errors.size());
  }

  Trial changed(const Trial& from, size_t knob, double factor) {
    KnobValues values = from.values;
    values[knob] *= factor;
    return tried(std::move(values));
  }

  // Far away first, so that what follows starts in the right valley.
  Trial scan(Trial best) {
    for (const size_t knob : smooth_knobs()) {
      const Trial from = best;
      for (const double factor : {0.1, 0.33, 3.0, 10.0}) {
        if (done(best)) return best;
        const Trial other = changed(from, knob, factor);
        if (other.cost < best.cost) best = other;
      }
    }
    return best;
  }

  std::vector<size_t> smooth_knobs() const {
    std::vector<size_t> found;
    for (size_t i = 0; i < knobs_.size(); ++i) {
      if (!knobs_[i].is_whole && !held_[i]) found.push_back(i);
    }
    return found;
  }

  // How the errors change with the logarithm of a knob: seen at the next value that differs.
  std::vector<double> slope(const Trial& at, size_t knob) {
    KnobValues values = at.values;
    values[knob] = knobs_[knob].is_whole ? values[knob] + 1 : values[knob] * std::exp(kDifference);
    Trial next = tried(values);
    if (next.values == at.values || next.errors.size() != at.errors.size()) {
      values = at.values;
      values[knob] =
          knobs_[knob].is_whole ? values[knob] - 1 : values[knob] * std::exp(-kDifference);
      next = tried(values);
    }
    std::vector<double> found(at.errors.size(), 0.0);
    const double by = std::log(next.values[knob] / at.values[knob]);
    if (by == 0 || next.errors.size() != at.errors.size()) return found;
    for (size_t i = 0; i < found.size(); ++i) found[i] = (next.errors[i] - at.errors[i]) / by;
    return found;
  }

  Trial refine(Trial best, int rounds) {
    const std::vector<size_t> smooth = smooth_knobs();
    double damping = 1e-3 * static_cast<double>(best.errors.size());
    for (int round = 0; round < rounds && !done(best); ++round) {
      Columns columns;
      for (const size_t knob : smooth) columns.push_back(slope(best, knob));
      const double before = best.cost;
      for (int attempt = 0; attempt < 4 && !spent(); ++attempt) {
        const std::vector<double> step = damped_step(columns, best.errors, damping);
        KnobValues values = best.values;
        for (size_t i = 0; i < smooth.size(); ++i) {
          values[smooth[i]] *= std::exp(std::clamp(step[i], -kStepMax, kStepMax));
        }
        const Trial next = tried(std::move(values));
        if (next.cost < best.cost) {
          best = next;
          damping /= 10;
          break;
        }
        damping *= 10;
      }
      if (best.cost > before * 0.98) break;
    }
    return best;
  }

  // Other counts, and far values of what does not matter here. One trial of each tells its errors;
  // which of them the smooth knobs could mend is guessed from their slopes here, and only the most
  // promising are refined.
  Trial look_elsewhere(const Trial& best) {
    Columns columns;
    for (const size_t knob : smooth_knobs()) columns.push_back(slope(best, knob));
    std::vector<std::pair<double, KnobValues>> ranked;
    for (const KnobValues& values : neighbours(best, columns)) {
      if (done(best)) break;
      const Trial other = tried(values);
      if (other.errors.size() != best.errors.size()) continue;
      ranked.emplace_back(cost_of(after_step(columns, other.errors)), values);
    }
    std::ranges::sort(ranked);
    Trial found = best;
    for (size_t i = 0; i < ranked.size() && i < kPromising && !done(found); ++i) {
      const Trial other = refine(tried(ranked[i].second), 3);
      if (other.cost < found.cost) found = other;
    }
    return found;
  }

  // The errors that are left if slopes were straight lines.
  std::vector<double> after_step(const Columns& columns, std::vector<double> errors) const {
    const double damping = 1e-3 * static_cast<double>(errors.size());
    const std::vector<double> step = damped_step(columns, errors, damping);
    for (size_t i = 0; i < step.size(); ++i) {
      const double by = std::clamp(step[i], -kStepMax, kStepMax);
      for (size_t k = 0; k < errors.size(); ++k) errors[k] += by * columns[i][k];
    }
    return errors;
  }

  // Counts near a count: its neighbours, and the usual ratios.
  static std::vector<double> counts_near(double count) {
    std::vector<double> found = {count, count - 1, count + 1};
    for (const double ratio : {0.5, 2.0 / 3, 0.75, 4.0 / 3, 1.5, 2.0}) {
      found.push_back(std::round(count * ratio));
    }
    std::ranges::sort(found);
    const auto rest = std::ranges::unique(found);
    found.erase(rest.begin(), rest.end());
    return found;
  }

  std::vector<KnobValues> neighbours(const Trial& best, const Columns& columns) {
    std::vector<KnobValues> found;
    const auto add = [&](KnobValues values) {
      values = within_range(std::move(values));
      if (values != best.values && std::ranges::find(found, values) == found.end()) {
        found.push_back(std::move(values));
      }
    };
    const std::vector<size_t> smooth = smooth_knobs();
    for (size_t i = 0; i < smooth.size(); ++i) {
      if (told(columns[i])) continue;
      for (const double factor : {0.2, 5.0}) {
        KnobValues values = best.values;
        values[smooth[i]] *= factor;
        add(std::move(values));
      }
    }
    // Counts one by one, and two together: what one adds another may take away.
    for (size_t first = 0; first < knobs_.size(); ++first) {
      for (size_t second = first + 1; second < knobs_.size(); ++second) {
        if (!knobs_[first].is_whole || !knobs_[second].is_whole) continue;
        const bool parallel = knobs_[second].key != "write_back_pages";
        for (const double one : counts_near(best.values[first])) {
          for (const double other : counts_near(best.values[second])) {
            const bool both = one != best.values[first] && other != best.values[second];
            if (both && !parallel) continue;
            KnobValues values = best.values;
            values[first] = one;
            values[second] = other;
            add(std::move(values));
          }
        }
      }
    }
    return found;
  }

  static bool told(const std::vector<double>& slope) {
    return std::ranges::any_of(slope, [](double s) { return std::abs(s) >= kToldMin; });
  }

  // How the errors change with each knob. A time that was fitted to next to nothing has no slope
  // there, but had one at the start.
  Columns slopes(const Trial& best) {
    const Trial first = tried(knob_values(start_));
    Columns columns;
    for (size_t i = 0; i < knobs_.size(); ++i) {
      columns.push_back(slope(best, i));
      if (!told(columns.back()) && best.values[i] < first.values[i])
        columns.back() = slope(first, i);
    }
    return columns;
  }

  static bool is_kept(const Trial& trial, const Trial& best) {
    return std::sqrt(trial.cost) <= std::sqrt(best.cost) * kKeepsFactor + kKeepsError;
  }

  // What no point tells goes back to where it was, and the others make up for it; unless it had to
  // go out of the way.
  Trial settle(const Trial& best) {
    const KnobValues start = knob_values(start_);
    const Columns columns = slopes(best);
    std::vector<size_t> untold;
    KnobValues values = best.values;
    for (size_t i = 0; i < knobs_.size(); ++i) {
      if (told(columns[i])) continue;
      held_[i] = true;
      if (values[i] != start[i]) untold.push_back(i);
      values[i] = start[i];
    }
    trials_max_ = trials_ + 2 * knobs_.size();  // the search may have used all it had
    const Trial together = untold.empty() ? best : refine(tried(std::move(values)), 2);
    held_.assign(held_.size(), false);
    if (is_kept(together, best)) return together;
    Trial settled = best;
    for (const size_t knob : untold) {
      KnobValues kept = settled.values;
      kept[knob] = start[knob];
      const Trial other = tried(std::move(kept));
      if (is_kept(other, best)) settled = other;
    }
    return settled;
  }

  FlashFit report(const Trial& best) {
    const KnobValues start = knob_values(start_);
    FlashFit fit{.parameters = with_knobs(start_, best.values), .error = std::sqrt(best.cost)};
    Columns columns = slopes(best);
    for (std::vector<double>& column : columns) {
      if (!told(column)) column.assign(column.size(), 0.0);
    }
    for (size_t i = 0; i < knobs_.size(); ++i) {
      FittedKnob knob{.start = start[i], .value = best.values[i]};
      if (!told(columns[i])) {
        knob.told = best.values[i] == start[i] ? Told::kNotAtAll : Told::kBound;
      } else if (independence(columns, i) < kIndependenceMin) {
        knob.told = Told::kTogether;
      }
      fit.knobs.push_back(knob);
    }
    for (const FioPoint& point : points_) {
      fit.predictions.push_back(
          predict(fit.parameters, point, options_.load).value_or(Prediction{}));
    }
    fit.trials = trials_;
    return fit;
  }

  const Parameters& start_;
  std::span<const FioPoint> points_;
  const FitOptions& options_;
  std::span<const FitKnob> knobs_;
  uint64_t trials_max_;
  std::vector<bool> held_;  // knobs that refine() leaves alone
  std::map<KnobValues, Trial> known_;
  uint64_t trials_ = 0;
  double lowest_ = kImpossible;
};

}  // namespace

std::optional<FlashFit> fit_flash(const Parameters& start, std::span<const FioPoint> points,
                                  const FitOptions& options) {
  return Search(start, points, options).run();
}

}  // namespace cairn::plan
