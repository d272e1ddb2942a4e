// SPDX-License-Identifier: Apache-2.0
#include <sys/time.h>

auto a = std::chrono::steady_clock::now();
auto b = std::chrono::system_clock::now();
using Clock = std::chrono::high_resolution_clock;
int c = clock_gettime(CLOCK_MONOTONIC, &spec);
int d = ::gettimeofday(&tv, nullptr);
auto e = time(nullptr);
auto f = std::time(&seconds);
auto g = __rdtsc();
