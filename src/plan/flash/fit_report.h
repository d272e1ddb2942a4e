// SPDX-License-Identifier: Apache-2.0
// A fit as people and programs read it.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "plan/flash/fio_points.h"
#include "plan/flash/flash_fit.h"

namespace cairn::plan {

// Tables of knobs and of errors per point, then what the points do not tell and how to measure it.
std::string fit_text(const FlashFit& fit, std::span<const FioPoint> points);

nlohmann::ordered_json fit_json(const FlashFit& fit, std::span<const FioPoint> points);

// The profile file, with the table of errors as comments.
std::string fit_profile(const FlashFit& fit, std::span<const FioPoint> points,
                        std::string_view name);

}  // namespace cairn::plan
