#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws a curve over a logarithmic axis as SVG: plot-curve.py TITLE X-LABEL Y-LABEL <POINTS >OUT.svg
POINTS: a line each, X Y [LABEL]."""
import math, sys
from xml.sax.saxutils import escape

title, x_label, y_label = sys.argv[1:4]
points = [(float(w[0]), float(w[1]), " ".join(w[2:])) for w in (line.split() for line in sys.stdin) if len(w) >= 2]
if not points: sys.exit("plot-curve.py: no points")
points.sort()
width, height, left, right, top, bottom = 760, 420, 80, 30, 50, 60

low, high = (math.floor(math.log10(points[0][0])), math.ceil(math.log10(points[-1][0])))
high = max(high, low + 1)
most = max(y for _, y, _ in points) or 1
step = 10 ** math.floor(math.log10(most))
step *= next(f for f in (0.2, 0.5, 1, 2) if most / (step * f) <= 8)
most = math.ceil(most / step) * step

def x_of(x): return left + (math.log10(x) - low) / (high - low) * (width - left - right)
def y_of(y): return height - bottom - y / most * (height - top - bottom)
def text(x, y, what, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(what)}</text>'

out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
       f'<rect width="{width}" height="{height}" fill="white"/>', text(width / 2, 24, title, more='font-size="15"'),
       text((left + width - right) / 2, height - 16, x_label),
       text(18, (top + height - bottom) / 2, y_label, more=f'transform="rotate(-90 18 {(top + height - bottom) / 2})"')]
for decade in range(low, high + 1):
    x = x_of(10 ** decade)
    out += [f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{height - bottom}" stroke="#ddd"/>',
            text(x, height - bottom + 18, f"{10 ** decade:g}")]
for i in range(round(most / step) + 1):
    y = y_of(i * step)
    out += [f'<line x1="{left}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" stroke="#ddd"/>',
            text(left - 8, y + 4, f"{i * step:g}", "end")]
out.append('<polyline fill="none" stroke="#1f77b4" stroke-width="2" points="' +
           " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y, _ in points) + '"/>')
for x, y, label in points:
    out += [f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="4" fill="#1f77b4"/>', text(x_of(x) + 7, y_of(y) - 7, label, "start")]
print("\n".join(out + ["</svg>"]))
