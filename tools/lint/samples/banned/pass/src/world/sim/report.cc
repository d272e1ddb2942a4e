// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

void report() { std::puts("the trace of a failing run"); }
