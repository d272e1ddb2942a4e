// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

std::random_device device;
std::mt19937 engine;
std::mt19937_64 wide{std::random_device{}()};
int a = rand() % 6;
int b = getrandom(buffer, 1, 0);
long c = ::random();
