// SPDX-License-Identifier: Apache-2.0
std::random_device seed;
