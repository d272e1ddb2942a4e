// SPDX-License-Identifier: Apache-2.0
int a = ::socket(AF_INET, SOCK_STREAM, 0);
int b = ::socket(AF_INET, SOCK_STREAM, 0);  // lint: allow()
int c = ::socket(AF_INET, SOCK_STREAM, 0);  // lint: allow
int d = 4;                                  // lint: allow(a call that has since gone)
