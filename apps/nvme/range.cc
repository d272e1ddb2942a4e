// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/range.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/units.h"
#include "config/bytes_text.h"

namespace cairn::apps {

void add_range(CLI::App& app, RangeOptions& options) {
  add_size(app, "--offset SIZE", options.offset, "first byte, such as 64K (0)");
  add_value(app, "--length SIZE", "how many bytes (up to the end)",
            [&options](const std::string& text) -> Attempt<void> {
              const Attempt<uint64_t> length = config::parse_bytes(text);
              if (!length) return std::unexpected(length.error());
              options.length = *length;
              return {};
            });
}

Attempt<void> check_blocks(const std::string& what, uint64_t bytes, uint32_t block_size) {
  const uint64_t below = align_down(bytes, block_size);
  if (below == bytes) return {};
  return refuse(
      fmt::format("{} is no multiple of the namespace's block of {} bytes: {} or {} would "
                  "do",
                  what, block_size, below, below + block_size));
}

Attempt<ByteRange> check_range(const RangeOptions& options, const drive::Geometry& geometry) {
  const uint64_t size = geometry.bytes();
  if (Attempt<void> sound = check_blocks(fmt::format("--offset {}", options.offset), options.offset,
                                         geometry.block_size);
      !sound) {
    return std::unexpected(sound.error());
  }
  if (options.offset >= size) {
    return refuse(
        fmt::format("--offset {} is behind the end of the namespace, which has {} bytes "
                    "({})",
                    options.offset, size, text_bytes(size)));
  }
  const ByteRange range{.offset = options.offset,
                        .length = options.length.value_or(size - options.offset)};
  if (Attempt<void> sound =
          check_blocks(fmt::format("--length {}", range.length), range.length, geometry.block_size);
      !sound) {
    return std::unexpected(sound.error());
  }
  if (range.length == 0) return refuse("--length 0 leaves nothing to do");
  if (range.length > size - range.offset) {
    return refuse(
        fmt::format("the range ends at byte {}, and the namespace at {} ({}): --length "
                    "{} would reach its end",
                    fmt::format("{} + {}", range.offset, range.length), size, text_bytes(size),
                    size - range.offset));
  }
  return range;
}

}  // namespace cairn::apps
