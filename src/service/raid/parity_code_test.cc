// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_code.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <vector>

#include "base/rng.h"

namespace cairn::drive {
namespace {

// GF(2^8) by hand, so that what is stored does not depend on a library's mind.
uint8_t times(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned bit = 0; bit < 8; ++bit) {
    if ((b >> bit & 1) != 0) product ^= static_cast<unsigned>(a) << bit;
  }
  for (unsigned bit = 15; bit >= 8; --bit) {
    if ((product >> bit & 1) != 0) product ^= 0x11dU << (bit - 8);
  }
  return static_cast<uint8_t>(product);
}
uint8_t inverse(uint8_t a) {
  for (unsigned b = 1; b < 256; ++b) {
    if (times(a, static_cast<uint8_t>(b)) == 1) return static_cast<uint8_t>(b);
  }
  return 0;
}

// All symbols of a code, filled at random and encoded.
struct Word {
  Word(size_t data, size_t parity, size_t bytes, uint64_t seed) : code(data, parity), size(bytes) {
    Rng rng(seed);
    for (size_t i = 0; i < code.all(); ++i) {
      symbols.emplace_back(bytes);
      if (i < data) rng.fill(symbols.back());
    }
    code.make(code.data_set(), code.parity_set(), pointers(), size);
  }
  std::span<std::byte* const> pointers() {
    for (size_t i = 0; i < symbols.size(); ++i) at[i] = symbols[i].data();
    return std::span<std::byte* const>(at).first(symbols.size());
  }

  ParityCode code;
  size_t size;
  std::vector<std::vector<std::byte>> symbols;
  std::array<std::byte*, kSymbolsMax> at{};
};

TEST(ParityCode, MakesTheSumsItsHeaderPromises) {
  for (const auto& [data, parity] : {std::pair<size_t, size_t>{2, 1}, {4, 2}, {20, 4}}) {
    Word word(data, parity, 64, 7);
    for (size_t j = 0; j < parity; ++j) {
      for (size_t at = 0; at < word.size; ++at) {
        uint8_t sum = 0;
        for (size_t i = 0; i < data; ++i) {
          sum ^= times(inverse(static_cast<uint8_t>((data + j) ^ i)),
                       std::to_integer<uint8_t>(word.symbols[i][at]));
        }
        ASSERT_EQ(sum, std::to_integer<uint8_t>(word.symbols[data + j][at]));
      }
    }
  }
}

TEST(ParityCode, AnyDataSymbolsGiveBackAllOthers) {
  for (const auto& [data, parity] :
       {std::pair<size_t, size_t>{1, 1}, {2, 1}, {3, 2}, {4, 3}, {8, 4}, {12, 2}}) {
    Word word(data, parity, 48, data * 10 + parity);
    const auto right = word.symbols;
    for (SymbolSet sources = 0; sources < SymbolSet{1} << word.code.all(); ++sources) {
      if (static_cast<size_t>(std::popcount(sources)) != data) continue;
      const SymbolSet lost = first_symbols(word.code.all()) & ~sources;
      for (size_t i = 0; i < word.code.all(); ++i) {
        if ((lost >> i & 1) != 0) std::ranges::fill(word.symbols[i], std::byte{0xee});
      }
      word.code.make(sources, lost, word.pointers(), word.size);
      ASSERT_EQ(word.symbols, right) << data << "+" << parity << " from " << sources;
    }
  }
}

TEST(ParityCode, AChangeOfOneSymbolIsAddedToParity) {
  Word word(5, 3, 4096, 3);
  Rng rng(9);
  std::vector<std::byte> changed(word.size);
  rng.fill(changed);
  std::vector<std::byte> change(word.size);
  for (size_t i = 0; i < word.size; ++i) change[i] = changed[i] ^ word.symbols[3][i];
  word.code.add_change(3, change.data(), word.code.parity_set(), word.pointers(), word.size);
  word.symbols[3] = changed;
  const auto added = word.symbols;
  word.code.make(word.code.data_set(), word.code.parity_set(), word.pointers(), word.size);
  EXPECT_EQ(added, word.symbols);
}

}  // namespace
}  // namespace cairn::drive
