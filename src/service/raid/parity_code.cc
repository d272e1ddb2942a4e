// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_code.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"

namespace cairn::drive {

namespace {

using Pointers = std::array<unsigned char*, kSymbolsMax>;

std::vector<size_t> members(SymbolSet set) {
  std::vector<size_t> all;
  for (size_t i = 0; i < kSymbolsMax; ++i) {
    if ((set >> i & 1) != 0) all.push_back(i);
  }
  return all;
}

Pointers pick(SymbolSet set, ParityCode::Symbols symbols) {
  Pointers picked{};
  size_t count = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if ((set >> i & 1) != 0) picked[count++] = reinterpret_cast<unsigned char*>(symbols[i]);
  }
  return picked;
}

}  // namespace

ParityCode::ParityCode(size_t data, size_t parity)
    : data_(data), all_(data + parity), matrix_(all_ * data) {
  CHECK(data > 0 && parity > 0 && all_ <= kSymbolsMax);
  gf_gen_cauchy1_matrix(matrix_.data(), static_cast<int>(all_), static_cast<int>(data_));
}

// Sources are S times the data, so the data is the inverse of S times the sources.
std::vector<uint8_t> ParityCode::coefficients(SymbolSet sources, SymbolSet targets) const {
  std::vector<uint8_t> square;
  for (const size_t row : members(sources)) {
    square.insert(square.end(), matrix_.begin() + static_cast<ptrdiff_t>(row * data_),
                  matrix_.begin() + static_cast<ptrdiff_t>((row + 1) * data_));
  }
  std::vector<uint8_t> inverse(square.size());
  const int singular = gf_invert_matrix(square.data(), inverse.data(), static_cast<int>(data_));
  CHECK(singular == 0, "every choice of symbols gives back the data");
  std::vector<uint8_t> rows;
  for (const size_t target : members(targets)) {
    for (size_t source = 0; source < data_; ++source) {
      uint8_t sum = 0;
      for (size_t i = 0; i < data_; ++i) {
        sum ^= gf_mul(matrix_[target * data_ + i], inverse[i * data_ + source]);
      }
      rows.push_back(sum);
    }
  }
  return rows;
}

std::vector<uint8_t>& ParityCode::tables(SymbolSet sources, SymbolSet targets) {
  const auto known = tables_.find({sources, targets});
  if (known != tables_.end()) return known->second;
  if (tables_.size() == kTablesMax) tables_.clear();
  std::vector<uint8_t> rows = coefficients(sources, targets);
  std::vector<uint8_t>& made = tables_[{sources, targets}];
  made.resize(32 * rows.size());
  ec_init_tables(static_cast<int>(data_), std::popcount(targets), rows.data(), made.data());
  return made;
}

void ParityCode::make(SymbolSet sources, SymbolSet targets, Symbols symbols, size_t length) {
  CHECK(static_cast<size_t>(std::popcount(sources)) == data_ && (sources & targets) == 0);
  if (targets == 0) return;
  Pointers from = pick(sources, symbols);
  Pointers to = pick(targets, symbols);
  ec_encode_data(static_cast<int>(length), static_cast<int>(data_), std::popcount(targets),
                 tables(sources, targets).data(), from.data(), to.data());
}

void ParityCode::add_change(size_t symbol, std::byte* change, SymbolSet parity, Symbols symbols,
                            size_t length) {
  CHECK(symbol < data_ && (parity & data_set()) == 0);
  if (parity == 0) return;
  Pointers to = pick(parity, symbols);
  ec_encode_data_update(static_cast<int>(length), static_cast<int>(data_), std::popcount(parity),
                        static_cast<int>(symbol), tables(data_set(), parity).data(),
                        reinterpret_cast<unsigned char*>(change), to.data());
}

}  // namespace cairn::drive
