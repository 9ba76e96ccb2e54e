// SPDX-License-Identifier: BSD-3-Clause
// Distributions of the steps' times, and what was done over time.

const bin_from = (bin) => (bin === 0 ? 0 : Math.pow(10, (bin - 1) / 8));
const bin_to = (bin) => Math.pow(10, bin / 8);

// One distribution over a logarithmic axis from 10^low to 10^high ps.
function histogram(step, low, high, width, height, labels) {
  const x = (ps) => width * (Math.log10(Math.max(ps, 1)) - low) / (high - low);
  const floor = labels ? height - 18 : height;
  const most = Math.max(...step.bins.map((b) => b[1]));
  const at = (n) => Math.max(1.5, (floor - 2) * n / most);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${step.name}: median ${time(step.times[0])}, 99th percentile ${time(step.times[1])}, longest ${time(step.times[2])}` });
  for (let power = Math.ceil(low); power <= high; power++) {
    drawing.append(svg("line", { class: "grid", x1: x(10 ** power), x2: x(10 ** power), y1: 0, y2: floor }));
    if (labels && power < high) drawing.append(svg("text", { x: x(10 ** power) + 3, y: height - 5 }, decade(power)));
  }
  for (const [bin, n] of step.bins) {
    const left = Math.max(0, x(bin_from(bin))), right = Math.min(width, Math.max(left + 1.5, x(bin_to(bin)) - 0.5));
    drawing.append(svg("rect", { class: "fill", x: left, width: Math.max(1, right - left), y: floor - at(n), height: at(n) },
      svg("title", null, `${time(bin_from(bin))} to ${time(bin_to(bin))}: ${count(n)}`)));
  }
  for (const [kind, ps] of [["p50", step.times[0]], ["p99", step.times[1]]])
    drawing.append(svg("line", { class: kind, x1: x(ps), x2: x(ps), y1: 0, y2: floor }));
  drawing.append(svg("line", { class: "axis", x1: 0, x2: width, y1: floor, y2: floor }));
  return drawing;
}

function decade(power) {
  const units = ["ps", "ns", "us", "ms", "s"];
  const unit = Math.min(4, Math.floor(power / 3));
  return `${10 ** (power - 3 * unit)} ${units[unit]}`;
}

function latencies() {
  if (!data.steps.length) return null;
  let low = Infinity, high = 0;
  for (const step of data.steps) for (const [bin] of step.bins) {
    if (bin > 0) low = Math.min(low, Math.log10(bin_from(bin)));
    high = Math.max(high, Math.log10(bin_to(bin)));
  }
  if (!isFinite(low)) low = 0;
  low = Math.floor(low), high = Math.max(Math.ceil(high), low + 1);
  const whole = data.steps.find((s) => s.to < 0), steps = data.steps.filter((s) => s.to >= 0);
  const out = [];
  if (whole) {
    const wide = Math.max(300, Math.min(1000, document.documentElement.clientWidth - 60));
    out.push(el("h3", null, "Whole life"),
      el("p", null, `${many(whole.count, "WQE")}: median ${time(whole.times[0])}, 99th percentile ${time(whole.times[1])}, longest ${time(whole.times[2])}.`),
      histogram(whole, low, high, wide, 140, true));
  }
  if (steps.length) {
    const name = (step) => el("span", null, el("i.swatch", { style: `background: var(--s${step.to}); margin-right: 7px` }), step.name);
    out.push(el("h3", null, "From stage to stage"),
      note(`All on one logarithmic scale, from ${decade(low)} to ${decade(high)}; line: median, dashed: 99th percentile. The figures are those of \`hcasim trace stats\`.`),
      table(["tight:step", "n:count", "n:median ns", "n:p99 ns", "n:longest ns", "distribution"],
        steps.map((s) => [name(s), count(s.count), ...s.times.map((t) => (t / 1e3).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 })),
          histogram(s, low, high, 320, 30, false)]), { class: "steps", label: "latency from stage to stage" }));
    if (data.steps_left_out) out.push(note(`${count(data.steps_left_out)} more steps are left out.`));
  }
  return part("latency", "Latency by stage", ...out);
}

// A curve over the axis' bins, in which cut time has no place. values: one a bin.
function curve(title, unit, values, failed) {
  const width = Math.max(300, Math.min(680, document.documentElement.clientWidth - 60)), height = 190;
  const left = 58, floor = height - 22, top = 8;
  const most = Math.max(...values), step = round_step(most || 1, 4), full = Math.max(step, Math.ceil(most / step) * step);
  const x = (i) => left + (width - left - 4) * i / values.length, y = (v) => floor - (floor - top) * v / full;
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step) - 1e-9)));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${title}: at most ${most.toPrecision(4)} ${unit}` });
  for (let v = 0; v <= full * 1.0001; v += step)
    drawing.append(svg("line", { class: "grid", x1: left, x2: width - 4, y1: y(v), y2: y(v) }),
      svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, v.toFixed(digits)));
  for (let i = 0; i < values.length; i++) {
    if (values[i] > 0)
      drawing.append(svg("rect", { class: "fill", x: x(i), width: Math.max(0.8, x(i + 1) - x(i)), y: y(values[i]), height: floor - y(values[i]) },
        svg("title", null, `${moment(data.axis.first + uncut(i * data.axis.bin), Math.max(data.axis.bin, data.rates[i][3]) / 10)}: ${values[i].toPrecision(4)} ${unit}`)));
    if (failed[i]) drawing.append(svg("rect", { class: "failed", x: x(i) - 0.5, width: Math.max(2, x(i + 1) - x(i)), y: floor, height: 5 },
      svg("title", null, `${count(failed[i])} failed`)));
  }
  const whole = data.axis.bin * values.length;
  let right = -1e9;
  for (const c of data.axis.cuts.length > 60 ? [] : data.axis.cuts) {
    const at = left + (width - left - 4) * placed(c[0]) / whole;
    if (at - right < 3) continue;
    right = at;
    drawing.append(svg("line", { class: "cut", x1: at, x2: at, y1: top, y2: floor }, svg("title", null, `${time(c[1])} without any WQE`)));
  }
  drawing.append(svg("line", { class: "axis", x1: left, x2: width - 4, y1: floor, y2: floor }));
  for (const [at, anchor] of [[0, "start"], [0.5, "middle"], [1, "end"]])
    drawing.append(svg("text", { x: left + (width - left - 4) * at, y: height - 5, "text-anchor": anchor },
      moment(data.axis.first + uncut(Math.min(at * whole, busy)), Math.max(1, (data.axis.last - data.axis.first) / 1000))));
  return el("div", null, el("h3", null, title), drawing);
}

function rates() {
  const all = data.rates.reduce((sum, r) => sum + r[0], 0);
  if (!all) return null;
  const failed = data.rates.map((r) => r[1]);
  return part("rates", "Bandwidth and message rate over time",
    note(data.axis.cuts.length
      ? `What was completed in each of ${data.axis.bins} bins, over all of the bin's time. Idle stretches take no room here, but do count as time of their bin. Red marks below: completions in error.`
      : `What was completed in each of ${data.axis.bins} bins of ${time(data.axis.bin)}. Red marks below: completions in error.`),
    el("div.charts", null,
      curve("Payload, Gb/s", "Gb/s", data.rates.map((r) => (r[3] ? 8e3 * r[2] / r[3] : 0)), failed),
      curve("WQEs, million a second", "M/s", data.rates.map((r) => (r[3] ? 1e6 * r[0] / r[3] : 0)), failed)));
}
