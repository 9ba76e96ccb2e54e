// SPDX-License-Identifier: BSD-3-Clause
// Carries the headers that the test programs share, precompiled.
int main() { return 0; }
