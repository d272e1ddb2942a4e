// SPDX-License-Identifier: Apache-2.0
// How services over legs open: the options that all of them have, and the steps that are alike.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "service/common/service.h"
#include "service/raid/leg_search.h"
#include "task/task.h"

namespace cairn::drive {

inline constexpr ServiceOption kDegradedOption{
    .key = "degraded",
    .kind = ServiceOption::Kind::kYesNo,
    .default_value = "no",
    .what = "go on without a leg that may have newer data"};
inline constexpr ServiceOption kMovedOption{.key = "moved",
                                            .kind = ServiceOption::Kind::kYesNo,
                                            .default_value = "no",
                                            .what = "what legs held was copied to other drives"};
inline constexpr ServiceOption kRetryOption{.key = "retry_ms",
                                            .default_value = "5000",
                                            .what = "how often a lost leg is tried again",
                                            .min = 1,
                                            .max = 3'600'000};
// Bytes per second of the work that `what` names.
constexpr ServiceOption rate_option(std::string_view what) {
  return {.key = "rate",
          .kind = ServiceOption::Kind::kSize,
          .default_value = "0",
          .what = what,
          .max = uint64_t{1} << 50};
}
inline Duration retry_of(const ServiceOptions& options) {
  return Duration{static_cast<int64_t>(options.number("retry_ms")) * 1'000'000};
}

// What a service does with the drives that it was given, by their labels.
template <class Label, class Found, class Options>
struct LegOpening {
  ReadLabel<Label> read;
  // No drive has a label.
  Result<Found> (*make_new)(env::Env& env, Candidates<Label>& candidates, const Options& options);
  Result<Found> (*assemble)(Candidates<Label>& candidates, const Label& newest,
                            const Options& options);
};

// What the service starts with. Nothing is written. All that is passed outlives the task.
template <class Label, class Found, class Options>
task::Task<Result<Found>> find_legs(ServiceParts& parts, const Options& options,
                                    LegOpening<Label, Found, Options> service) {
  Result<Candidates<Label>> candidates =
      co_await read_labels<Label>(parts.env, parts.below, parts.may_format, service.read);
  if (!candidates) co_return fail(candidates.error());
  const Label* newest = newest_label(*candidates);
  if (newest == nullptr) co_return service.make_new(parts.env, *candidates, options);
  co_return service.assemble(*candidates, *newest, options);
}

// The drive, when it has begun with the label as it was found; if it cannot, it is closed.
template <class Legged, class Label>
task::Task<Result<std::unique_ptr<Drive>>> begin_or_close(std::unique_ptr<Legged> drive,
                                                          Label newest) {
  const Result<void> begun = co_await drive->begin(newest);
  if (begun) co_return std::move(drive);
  co_await drive->close();
  co_return fail(begun.error());
}

}  // namespace cairn::drive
