// SPDX-License-Identifier: Apache-2.0
// Random numbers as the reference draws them: each is the first of a stream of its own.
#pragma once

#include <array>
#include <cstdint>

namespace cairn::net {

// L'Ecuyer's MRG32k3a with streams 2^127 steps apart (Operations Research 50(6), 2002). Every draw
// of the reference opens the next stream, so whatever else opens streams shifts its marks.
class MarkStreams {
 public:
  explicit MarkStreams(uint64_t first_stream);

  // Uniform in (0, 1).
  double next();
  void skip();

 private:
  std::array<std::array<uint64_t, 3>, 2> start_;  // of the next stream
};

}  // namespace cairn::net
