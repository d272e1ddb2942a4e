// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/fit_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/table.h"
#include "base/words.h"
#include "plan/flash/flash_profile_text.h"

namespace cairn::plan {

namespace {

// One measured number beside the model's.
struct Row {
  const FioPoint* point;
  const char* side;
  const char* measure;
  double measured;
  double fitted;
  double error() const { return fitted / measured - 1; }
};

std::vector<Row> rows_of(const FlashFit& fit, std::span<const FioPoint> points) {
  std::vector<Row> rows;
  const auto add = [&](const FioPoint& point, const char* side,
                       const std::optional<LoadSide>& measured,
                       const std::optional<LoadSide>& fitted) {
    if (!measured) return;
    const LoadSide ours = fitted.value_or(LoadSide{});
    rows.push_back({&point, side, "iops", measured->iops, ours.iops});
    rows.push_back({&point, side, "mean_ns", measured->mean_ns, ours.mean_ns});
    if (measured->p99_ns > 0) {
      rows.push_back({&point, side, "p99_ns", measured->p99_ns, ours.p99_ns});
    }
  };
  for (size_t i = 0; i < points.size(); ++i) {
    add(points[i], "read", points[i].read, fit.predictions[i].read);
    add(points[i], "write", points[i].write, fit.predictions[i].write);
  }
  return rows;
}

bool is_time(std::string_view measure) { return measure.ends_with("_ns"); }

std::string number_text(std::string_view measure, double value) {
  if (is_time(measure)) return fmt::format("{:.1f} us", value / 1000);
  return fmt::format("{:.0f}", value);
}

std::string measure_text(const Row& row) {
  const std::string_view what =
      is_time(row.measure)
          ? std::string_view(row.measure).substr(0, std::string_view(row.measure).size() - 3)
          : std::string_view(row.measure);
  return fmt::format("{} {}", row.side, what);
}

std::string error_table(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> lines = {
      {"job", "load", "number", "measured", "fitted", "error"}};
  const FioPoint* before = nullptr;
  for (const Row& row : rows) {
    const bool is_new = row.point != before;
    before = row.point;
    lines.push_back({is_new ? escaped(row.point->job) : "", is_new ? load_text(*row.point) : "",
                     measure_text(row), number_text(row.measure, row.measured),
                     number_text(row.measure, row.fitted),
                     fmt::format("{:+.1f}%", row.error() * 100)});
  }
  return table_text(lines);
}

std::string value_text(const FitKnob& knob, double value) {
  if (knob.is_whole) return fmt::format("{:.0f}", value);
  if (knob.key == "command" || knob.key == "read" || knob.key == "program") {
    return fmt::format("{:.2f} us", value / 1000);
  }
  return fmt::format("{:.4g}", value);
}

const char* told_text(Told told) {
  switch (told) {
    case Told::kWell:
      return "";
    case Told::kNotAtAll:
      return "no point tells it";
    case Told::kBound:
      return "only that the profile's does not fit";
    case Told::kTogether:
      return "known only together with others";
  }
  return "";
}

const char* told_word(Told told) {
  switch (told) {
    case Told::kWell:
      return "well";
    case Told::kNotAtAll:
      return "not";
    case Told::kBound:
      return "bound";
    case Told::kTogether:
      return "together";
  }
  return "";
}

std::string knob_table(const FlashFit& fit) {
  std::vector<std::vector<std::string>> lines = {{"key", "profile", "fitted", ""}};
  for (size_t i = 0; i < fit.knobs.size(); ++i) {
    const FitKnob& knob = fit_knobs()[i];
    lines.push_back({std::string(knob.key), value_text(knob, fit.knobs[i].start),
                     value_text(knob, fit.knobs[i].value), told_text(fit.knobs[i].told)});
  }
  return table_text(lines);
}

// What to measure for the knobs that points do not tell.
std::string advice(const FlashFit& fit) {
  std::string text;
  for (size_t i = 0; i < fit.knobs.size(); ++i) {
    if (fit.knobs[i].told == Told::kWell) continue;
    text += fmt::format("{}: {}\n  {}\n", fit_knobs()[i].key, told_text(fit.knobs[i].told),
                        fio_command(fit_knobs()[i]));
  }
  if (text.empty()) return text;
  return "\nThese points would tell more (writes destroy what is on the drive); give their files "
         "with --from too:\n" +
         text;
}

std::string headline(const FlashFit& fit, size_t points) {
  return fmt::format(
      "{} points, {} drives tried: error {:.2f}% (root mean square of throughput "
      "and mean latency)\n",
      points, fit.trials, fit.error * 100);
}

}  // namespace

std::string fit_text(const FlashFit& fit, std::span<const FioPoint> points) {
  return headline(fit, points.size()) + "\n" + knob_table(fit) + "\n" +
         error_table(rows_of(fit, points)) + advice(fit);
}

nlohmann::ordered_json fit_json(const FlashFit& fit, std::span<const FioPoint> points) {
  nlohmann::ordered_json knobs = nlohmann::ordered_json::array();
  for (size_t i = 0; i < fit.knobs.size(); ++i) {
    const FittedKnob& fitted = fit.knobs[i];
    nlohmann::ordered_json one = {{"key", fit_knobs()[i].key},
                                  {"profile", fitted.start},
                                  {"fitted", fitted.value},
                                  {"told", told_word(fitted.told)}};
    if (fitted.told != Told::kWell) one["measure"] = fio_command(fit_knobs()[i]);
    knobs.push_back(std::move(one));
  }
  nlohmann::ordered_json numbers = nlohmann::ordered_json::array();
  for (const Row& row : rows_of(fit, points)) {
    numbers.push_back({{"job", row.point->job},
                       {"load", load_text(*row.point)},
                       {"side", row.side},
                       {"measure", row.measure},
                       {"measured", row.measured},
                       {"fitted", row.fitted},
                       {"error", row.error()}});
  }
  return {{"schema_version", 1}, {"points", points.size()}, {"trials", fit.trials},
          {"error", fit.error},  {"parameters", knobs},     {"numbers", numbers}};
}

std::string fit_profile(const FlashFit& fit, std::span<const FioPoint> points,
                        std::string_view name) {
  std::string out;
  const std::string comments = "Made by cairn plan fit.\n" + headline(fit, points.size()) + "\n" +
                               error_table(rows_of(fit, points));
  for (size_t from = 0; from < comments.size();) {
    const size_t end = comments.find('\n', from);
    const std::string line = comments.substr(from, end - from);
    out += line.empty() ? "#\n" : fmt::format("# {}\n", line);
    from = end + 1;
  }
  return out + flash_profile_text(fit.parameters, name);
}

}  // namespace cairn::plan
