// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace, in the format of its looks or in one that the first byte chooses: requests
// in order that have a length, or a mistake that says something.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "trace/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::trace;
  if (size == 0) return 0;
  const size_t chosen = data[0] % (formats().size() + 1);
  ReaderOptions options{.reorder = 8};
  if (chosen < formats().size()) options.format = formats()[chosen].name;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Outcome<Reader> reader = Reader::open(std::make_unique<TextSource>(std::move(text)), options);
  if (!reader) {
    CHECK(!reader.error().text.empty(), "a mistake says something");
    return 0;
  }
  Nanos last = 0;
  for (;;) {
    const Outcome<std::optional<Record>> next = reader->next();
    if (!next) {
      CHECK(!next.error().text.empty(), "a mistake says something");
      return 0;
    }
    if (!*next) return 0;
    CHECK((*next)->arrival >= last && (*next)->bytes > 0,
          "requests are in order and have a length");
    last = (*next)->arrival;
  }
}
