// SPDX-License-Identifier: Apache-2.0
// ParityCode: Reed-Solomon. From `data` symbols it makes `parity` more, so that any `data` of all
// of them give back every other.
//
// Symbols 0 to data-1 are the data itself. Parity symbol j is the sum over i of c(j, i) times data
// symbol i, byte by byte in GF(2^8) with the polynomial 0x11d, where c(j, i) is the inverse of
// (data + j) xor i: a Cauchy matrix, of which every square part can be inverted. This is a part of
// what is stored, and never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace cairn::drive {

inline constexpr size_t kSymbolsMax = 24;
// Of symbols or legs, by bit.
using SymbolSet = uint32_t;

// The first `count` of them.
constexpr SymbolSet first_symbols(size_t count) { return (SymbolSet{1} << count) - 1; }

class ParityCode {
 public:
  // At least one of each, at most kSymbolsMax together.
  ParityCode(size_t data, size_t parity);

  size_t data() const { return data_; }
  size_t parity() const { return all_ - data_; }
  size_t all() const { return all_; }
  SymbolSet data_set() const { return first_symbols(data_); }
  SymbolSet parity_set() const { return first_symbols(all_) & ~data_set(); }

  // One pointer per symbol, to `length` bytes where the symbol is named in a set.
  using Symbols = std::span<std::byte* const>;

  // Makes `targets` of `sources`, which are data() symbols and none of the targets.
  void make(SymbolSet sources, SymbolSet targets, Symbols symbols, size_t length);
  // A data symbol changed: adds what that does to these parity symbols, given old xor new bytes.
  void add_change(size_t symbol, std::byte* change, SymbolSet parity, Symbols symbols,
                  size_t length);

 private:
  // For isa-l: the products of each coefficient.
  std::vector<uint8_t>& tables(SymbolSet sources, SymbolSet targets);
  std::vector<uint8_t> coefficients(SymbolSet sources, SymbolSet targets) const;

  static constexpr size_t kTablesMax = 64;  // kept; then they are made anew
  size_t data_;
  size_t all_;
  std::vector<uint8_t> matrix_;  // all_ rows of data_ coefficients
  std::map<std::pair<SymbolSet, SymbolSet>, std::vector<uint8_t>> tables_;
};

}  // namespace cairn::drive
