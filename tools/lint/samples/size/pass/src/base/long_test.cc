// SPDX-License-Identifier: Apache-2.0
int v0;
int v1;
int v2;
int v3;
int v4;
int v5;
