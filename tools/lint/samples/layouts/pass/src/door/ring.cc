// SPDX-License-Identifier: Apache-2.0
uint16_t head_of(Bytes queue) { return load<uint16_t>(queue); }
