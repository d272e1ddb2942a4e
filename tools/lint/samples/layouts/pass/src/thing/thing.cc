// SPDX-License-Identifier: Apache-2.0
#include "thing/thing_format.h"

// A struct of a format may be loaded anywhere, and others are only memory.
struct State {
  uint64_t count = 0;
};
static_assert(sizeof(State) == 8);
uint64_t first_of(Bytes bytes) { return load<format::Head>(bytes).magic; }
void keep(Store& store, State state) { store.keep(state); }
