// SPDX-License-Identifier: Apache-2.0
// Small dense least squares: a handful of unknowns, some dozens of equations.
#pragma once

#include <cstddef>
#include <vector>

namespace cairn::plan {

// One column per unknown, each with one number per equation.
using Columns = std::vector<std::vector<double>>;

// The step x that makes |errors + columns x|^2 + damping |x|^2 smallest. damping is above 0.
std::vector<double> damped_step(const Columns& columns, const std::vector<double>& errors,
                                double damping);

// The part of a column's length that the others cannot make up for: 0 to 1. Columns of length 0
// count for nothing; 0 when it is one itself.
double independence(const Columns& columns, size_t column);

}  // namespace cairn::plan
