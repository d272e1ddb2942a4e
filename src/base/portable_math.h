// SPDX-License-Identifier: Apache-2.0
// Functions of doubles that give the same bits on every machine.
//
// A simulated run is a function of its seed, on whatever processor it runs. Additions, products,
// quotients and square roots are rounded alike everywhere; the C library's logarithm and its kin
// are not, because they are other code on other processors, and even on other x86 ones. These are
// made of the former alone (and of no fused steps: cmake/CairnCompiler.cmake), are off by a few
// units in the last place at most, and any core may call them.
#pragma once

#include <cstdint>

namespace cairn {

// base to the power of a whole number, by squaring: 1 for 0, whatever the base.
double whole_power(double base, uint64_t exponent);

// Of a finite number above 0. Exact for 1; binary_log is exact for powers of two.
double natural_log(double x);
double binary_log(double x);

// e to the power of x. 0 below -700, where doubles lose their precision; x is at most 700.
double natural_exp(double x);

// Of any finite number, with its sign.
double cube_root(double x);

// cos(2 pi turns), for turns from 0 to 1.
double cosine_of_turns(double turns);

}  // namespace cairn
