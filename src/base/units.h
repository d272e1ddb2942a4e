// SPDX-License-Identifier: Apache-2.0
// Time and size as types: a Duration is not a Time, and neither is a bare integer.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace cairn {

// A span of time in nanoseconds, negative allowed.
struct Duration {
  int64_t ns = 0;

  static constexpr Duration max() { return {INT64_MAX}; }
  static constexpr Duration from_seconds(double seconds) {
    return {static_cast<int64_t>(seconds * 1e9)};
  }
  constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }
  constexpr double us() const { return static_cast<double>(ns) * 1e-3; }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
  friend constexpr Duration operator*(Duration a, int64_t k) { return {a.ns * k}; }
  friend constexpr Duration operator*(int64_t k, Duration a) { return {a.ns * k}; }
  friend constexpr Duration operator/(Duration a, int64_t k) { return {a.ns / k}; }
  friend constexpr int64_t operator/(Duration a, Duration b) { return a.ns / b.ns; }
  constexpr Duration& operator+=(Duration d) { return ns += d.ns, *this; }
};

// A point on a world's monotonic clock. Its zero is arbitrary: only differences mean something.
struct Time {
  int64_t ns = 0;

  static constexpr Time never() { return {INT64_MAX}; }

  friend constexpr auto operator<=>(Time, Time) = default;
  // Saturates at never(), so that "no deadline" stays no deadline.
  friend constexpr Time operator+(Time t, Duration d) {
    return d.ns > 0 && t.ns > INT64_MAX - d.ns ? never() : Time{t.ns + d.ns};
  }
  friend constexpr Duration operator-(Time a, Time b) { return {a.ns - b.ns}; }
};

// Nanoseconds since 1970, for people and certificates; it may step. Never used to measure.
struct WallTime {
  int64_t ns = 0;
  friend constexpr auto operator<=>(WallTime, WallTime) = default;
};

inline namespace literals {
constexpr Duration operator""_ns(unsigned long long n) { return {static_cast<int64_t>(n)}; }
constexpr Duration operator""_us(unsigned long long n) { return {static_cast<int64_t>(n) * 1000}; }
constexpr Duration operator""_ms(unsigned long long n) {
  return {static_cast<int64_t>(n) * 1'000'000};
}
constexpr Duration operator""_s(unsigned long long n) {
  return {static_cast<int64_t>(n) * 1'000'000'000};
}
constexpr uint64_t operator""_KiB(unsigned long long n) { return n << 10; }
constexpr uint64_t operator""_MiB(unsigned long long n) { return n << 20; }
constexpr uint64_t operator""_GiB(unsigned long long n) { return n << 30; }
constexpr uint64_t operator""_TiB(unsigned long long n) { return n << 40; }
}  // namespace literals

// "12.3 us", "4.0 s": three digits, the unit that fits.
std::string text(Duration duration);
// "4 KiB", "1.5 GiB"; exact below 1 KiB.
std::string text_bytes(uint64_t bytes);

}  // namespace cairn
