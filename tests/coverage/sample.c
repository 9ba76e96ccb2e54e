/* SPDX-License-Identifier: BSD-3-Clause */
/* Code to be measured: the test counts its instructions, and finds lines by the marks behind them. */
int sample_values[4];

static inline __attribute__((always_inline)) int doubled(int x) { /* mark: inlined */
  sample_values[0] = x;                                           /* mark: inlined body */
  return x * 2;                                                   /* mark: inlined return */
}

__attribute__((noinline)) int sample_reached(int x) { /* mark: reached */
  if (x > 3) {                                        /* mark: condition */
    sample_values[1] = doubled(x);                    /* mark: jumped over */
  }
  sample_values[2] = x; /* mark: reached body */
  return x + 1;
}

__attribute__((noinline)) int sample_never(int x) { /* mark: never */
  sample_values[3] = x - 7;                         /* mark: never body */
  return x ^ 5;
}
