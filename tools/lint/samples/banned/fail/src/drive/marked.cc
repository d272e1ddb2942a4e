// SPDX-License-Identifier: Apache-2.0
auto now = std::chrono::steady_clock::now();  // lint: allow(production code has no excuse)
