// SPDX-License-Identifier: BSD-3-Clause
// The time line: a lane for each send queue, in it a strip that counts all of its WQEs over time, and below it WQEs
// one by one. t: ps since the axis begins; u: the same without the idle stretches that are cut out.

const cuts = data.axis.cuts.map(([at, length]) => ({ at, length }));
const span = data.axis.last - data.axis.first;
let before = 0;
for (const c of cuts) { c.u = c.at - before; c.before = before; before += c.length; }
const busy = span - before;

// The last cut that begins at or before a place, by a member; -1: none.
function cut_at(member, value) {
  let low = 0, high = cuts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cuts[middle][member] <= value) low = middle + 1; else high = middle;
  }
  return low - 1;
}
function placed(t) {
  const i = cut_at("at", t);
  return i < 0 ? t : t - cuts[i].before - Math.min(cuts[i].length, t - cuts[i].at);
}
function uncut(u) {
  const i = cut_at("u", u);
  return i < 0 ? u : u + cuts[i].before + cuts[i].length;
}

const kFailed = 1, kOpen = 2, kSeen = 3, kMostRows = 40, kStrip = 16, kGap = 10;

function make_timeline() {
  const bars = data.bars.map(([lane, serial, life, op, size, status, t, took, told, passed, kind]) => {
    const steps = [];
    for (let i = 0; i < passed.length; i += 2) steps.push({ stage: passed[i], t: t + passed[i + 1] });
    // What the driver does with a CQE is no part of the bar: it may take long.
    const tail = steps.find((s) => s.stage === data.stages.length - 1) || null, own = steps.filter((s) => s !== tail);
    const end = Math.max(took === null ? t : t + took, own.length ? own[own.length - 1].t : t);
    return { lane, serial, life, op, size, status, t, took, told, steps, own, tail, kind, end, row: 0, shown: true,
      name: `${data.lanes[lane].name}:${serial}${life ? "." + life : ""}` };
  });
  const by_told = new Map();
  for (const bar of bars) if (bar.told >= 0) by_told.set(bar.told, bar);

  const canvas = el("canvas", { tabindex: 0, role: "application", "aria-describedby": "keys",
    "aria-label": "time line of WQEs; keys: plus and minus zoom, arrows move, n and p go from WQE to WQE" });
  const spacer = el("div"), frame = el("div.frame", null, canvas, spacer);
  const ruler = el("canvas.ruler", { "aria-hidden": "true" });
  const overlap = el("div.faint"), pointed = el("div.pointed", { "aria-hidden": "true" });
  const detail = el("div.detail", { "aria-live": "polite", tabindex: 0, role: "region", "aria-label": "the chosen WQE" });
  const ink = canvas.getContext("2d"), ruler_ink = ruler.getContext("2d");

  let cutting = cuts.length > 0, total = 1, view = [0, 1], lanes = [], selected = null, gutter = 132, width = 0, height = 0, colours = {};
  const filter = { lane: -1, op: -1, failed: false };
  const place = (t) => (cutting ? placed(t) : t), back = (u) => (cutting ? uncut(u) : u);
  const X = (u) => gutter + (u - view[0]) * (width - gutter) / (view[1] - view[0]);
  const U = (x) => view[0] + (x - gutter) * (view[1] - view[0]) / (width - gutter);

  function read_colours() {
    for (const name of ["back", "line", "text", "faint", "accent", "bad", "strip", "grid"]) colours[name] = css(`--${name}`);
    colours.stages = data.stages.map((_, i) => css(`--s${i}`));
  }

  // Rows within each lane: a WQE takes the first that is free, so those under way at once lie below each other.
  function lay_out() {
    total = Math.max(1, cutting ? busy : span);
    lanes = data.lanes.map((lane, number) => ({ lane, number, bars: [], rows: 1, deep: 0, most: Math.max(1, ...lane.bins.map((b) => b[3])) }));
    for (const bar of bars) {
      bar.shown = (filter.op < 0 || bar.op === filter.op) && (!filter.failed || bar.kind === kFailed) && (filter.lane < 0 || bar.lane === filter.lane);
      bar.u0 = place(bar.t), bar.u1 = Math.max(bar.u0, place(bar.end));
      for (const s of bar.steps) s.u = place(s.t);
      if (bar.shown) lanes[bar.lane].bars.push(bar);
    }
    lanes = lanes.filter((l) => filter.lane < 0 || l.number === filter.lane);
    let y = 4;
    for (const lane of lanes) {
      const ends = [];
      for (const bar of lane.bars) {
        let row = ends.findIndex((end) => end <= bar.t);
        if (row < 0 && ends.length < kMostRows) row = ends.length;
        if (row < 0) { row = ends.indexOf(Math.min(...ends)); lane.deep++; }
        ends[row] = bar.end;
        bar.row = row;
      }
      lane.rows = Math.max(1, ends.length);
      lane.h = lane.rows <= 4 ? 14 : lane.rows <= 10 ? 10 : lane.rows <= 20 ? 7 : 5;
      lane.y = y;
      lane.head = gutter ? 0 : 16;
      lane.rows_y = y + lane.head + kStrip + 3;
      y = lane.rows_y + lane.rows * lane.h + kGap;
    }
    const deep = lanes.filter((l) => l.deep).length;
    overlap.textContent = deep ? `In ${many(deep, "queue")} more than ${kMostRows} WQEs are under way at once: there, bars overlap.` : "";
    spacer.style.height = "0px";
    const room = Math.min(y, Math.max(160, Math.min(620, Math.round(innerHeight * 0.62))));
    frame.style.height = `${room}px`;
    canvas.style.height = `${room}px`;
    spacer.style.height = `${Math.max(0, y - room)}px`;
    resize();
  }

  function resize() {
    width = frame.clientWidth, height = frame.clientHeight;
    const narrow = width < 640, was = gutter;
    gutter = narrow ? 0 : 132;
    if (was !== gutter) return lay_out();
    const scale = devicePixelRatio || 1;
    for (const [c, context, h] of [[canvas, ink, height], [ruler, ruler_ink, 26]]) {
      c.width = Math.max(1, Math.round(width * scale)), c.height = Math.max(1, Math.round(h * scale));
      c.style.width = `${width}px`;
      context.setTransform(scale, 0, 0, scale, 0, 0);
    }
    redraw();
  }

  let asked = false;
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  }

  function look_at(from, to) {
    const least = Math.min(total, 20);
    let size = Math.max(least, Math.min(total, to - from));
    let at = (from + to) / 2 - size / 2;
    at = Math.max(0, Math.min(total - size, at));
    view = [at, at + size];
    redraw();
  }
  function zoom(factor, x) {
    // About the pointer, else the chosen WQE, else the middle.
    const middle = (view[0] + view[1]) / 2, chosen = selected && (selected.u0 + Math.min(selected.u1, view[1])) / 2;
    const seen = selected && chosen >= view[0] && chosen <= view[1];
    const u = x !== undefined ? U(Math.max(x, gutter)) : seen ? chosen : middle, share = (u - view[0]) / (view[1] - view[0]);
    const size = Math.max(Math.min(total, 20), Math.min(total, (view[1] - view[0]) * factor));
    look_at(u - share * size, u + (1 - share) * size);
  }
  const pan = (share) => { const d = share * (view[1] - view[0]); look_at(view[0] + d, view[1] + d); };

  // Places with a label: [u, text], the left end's own moment first.
  function ticks() {
    const size = view[1] - view[0], step = round_step(size, Math.max(3, (width - gutter) / (gutter ? 110 : 80))), out = [];
    const t0 = back(view[0]), t1 = back(view[1]), first = data.axis.first;
    const base = Math.abs(first + t1) > 2000 * step ? Math.floor((first + t0) / (100 * step)) * 100 * step : 0;
    const name = (at) => (base ? `+${moment(at - base, step)}` : moment(at, step));
    const seen = cutting ? cuts.slice(Math.max(0, cut_at("u", view[0])), cut_at("u", view[1]) + 1).filter((c) => c.at + c.length > t0 && c.at < t1) : [];
    if (seen.length > 8) {  // no even steps: what time it is at even places
      const places = Math.max(2, Math.floor((width - gutter) / 150));
      for (let i = 0; i < places; i++) {
        const u = view[0] + (i + 0.5) * size / places;
        out.push([u, moment(first + back(u), Math.max(1, (t1 - t0) / 1000))]);
      }
      return { base: "", marks: out, seen };
    }
    const parts = [];
    let from = t0;
    for (const c of seen) {
      parts.push([from, c.at]);
      from = c.at + c.length;
    }
    parts.push([from, t1]);
    for (const [a, b] of parts) {
      const k = Math.ceil((first + a) / step);
      for (let i = 0; i < 400 && (k + i) * step <= first + b; i++) out.push([place((k + i) * step - first), name((k + i) * step)]);
    }
    return { base: base ? moment(base, 100 * step) : "", marks: out, seen };
  }

  function draw() {
    const scale_y = frame.scrollTop;
    ink.fillStyle = colours.back;
    ink.fillRect(0, 0, width, height);
    ruler_ink.fillStyle = colours.back;
    ruler_ink.fillRect(0, 0, width, 26);
    const font = '12px system-ui, "DejaVu Sans", sans-serif';
    ink.font = ruler_ink.font = font;
    ink.textBaseline = ruler_ink.textBaseline = "middle";
    draw_ruler(ticks());
    let drawn = 0;
    ink.save();
    ink.beginPath();
    ink.rect(gutter, 0, width - gutter, height);
    ink.clip();
    for (const lane of lanes) {
      if (lane.y - scale_y > height || lane.rows_y + lane.rows * lane.h + kGap < scale_y) continue;
      draw_strip(lane, lane.y + lane.head - scale_y);
      for (const bar of lane.bars) {
        if (!bar.tail || bar.tail.u < view[0] || bar.u1 > view[1]) continue;
        const from = Math.max(gutter, X(bar.u1)), to = Math.min(width, X(bar.tail.u));
        ink.fillStyle = colours.stages[bar.tail.stage];
        ink.fillRect(from, lane.rows_y + (bar.row + 0.5) * lane.h - 1.5 - scale_y, Math.max(0, to - from), lane.h > 6 ? 2 : 1);
      }
      for (const bar of lane.bars) {
        if (bar.u1 < view[0] || bar.u0 > view[1]) continue;
        draw_bar(bar, lane.rows_y + bar.row * lane.h - scale_y, lane.h - (lane.h > 6 ? 2 : 1));
        drawn++;
      }
    }
    ink.restore();
    for (const lane of lanes) {
      if (lane.y - scale_y > height || lane.rows_y + lane.rows * lane.h + kGap < scale_y) continue;
      draw_name(lane, scale_y);
    }
    Object.assign(canvas.dataset, { bars: drawn, from: view[0], to: view[1], selected: selected ? selected.name : "", lanes: lanes.length });
  }

  function draw_ruler({ base, marks, seen }) {
    let right = gutter + 4;
    ruler_ink.fillStyle = colours.faint;
    if (base) {
      const text = `${base} ...`;
      ruler_ink.fillText(text, 4, 13);
      right = Math.max(right, 4 + ruler_ink.measureText(text).width + 12);
    }
    ink.lineWidth = ruler_ink.lineWidth = 1;
    for (const [u, text] of marks) {
      const x = Math.round(X(u)) + 0.5;
      if (x < gutter - 1) continue;
      ink.strokeStyle = colours.grid;
      ink.beginPath(), ink.moveTo(x, 0), ink.lineTo(x, height), ink.stroke();
      ruler_ink.strokeStyle = colours.line;
      ruler_ink.beginPath(), ruler_ink.moveTo(x, 20), ruler_ink.lineTo(x, 26), ruler_ink.stroke();
      const w = ruler_ink.measureText(text).width, at = Math.max(right, Math.min(x - w / 2, width - w - 2));
      if (at > x - w / 2 + 14 || at + w > width) continue;
      ruler_ink.fillText(text, at, 11);
      right = at + w + 12;
    }
    if (seen.length > 60) return;
    let last = -9;
    for (const c of seen) {
      const x = Math.round(X(c.u)) + 0.5;
      if (x < gutter || x > width || x - last < 3) continue;
      last = x;
      for (const [context, from, to] of [[ink, 0, height], [ruler_ink, 18, 26]]) {
        context.strokeStyle = colours.faint;
        context.setLineDash([2, 4]);
        context.beginPath(), context.moveTo(x, from), context.lineTo(x, to), context.stroke();
        context.setLineDash([]);
      }
    }
  }

  function draw_strip(lane, y) {
    const size = data.axis.bin;
    for (const [bin, , failed, under_way] of lane.lane.bins) {
      const u0 = place(uncut(bin * size)), u1 = cutting ? (bin + 1) * size : uncut((bin + 1) * size);
      if (u1 < view[0] || u0 > view[1]) continue;
      const x0 = Math.max(X(u0), gutter - 1), x1 = Math.min(X(u1), width + 1), h = Math.max(1, (kStrip - 3) * under_way / lane.most);
      ink.fillStyle = colours.strip;
      ink.fillRect(x0, y + kStrip - h, Math.max(1, x1 - x0), h);
      if (!failed) continue;
      ink.fillStyle = colours.bad;
      ink.fillRect(x0, y + kStrip - 3, Math.max(2, x1 - x0), 3);
    }
    ink.fillStyle = colours.line;
    ink.fillRect(gutter, y + kStrip, width - gutter, 1);
  }

  function draw_bar(bar, y, h) {
    const x0 = X(bar.u0), x1 = Math.max(x0 + 1.5, X(bar.u1)), steps = bar.own;
    if (x1 - x0 < 4 || steps.length < 2) {
      // Too narrow for its parts: the colour of the longest.
      let longest = steps.length ? steps[0].stage : 0, most = -1;
      for (let i = 1; i < steps.length; i++)
        if (steps[i].u - steps[i - 1].u > most) most = steps[i].u - steps[i - 1].u, longest = steps[i].stage;
      ink.fillStyle = colours.stages[longest];
      ink.fillRect(x0, y, x1 - x0, h);
    } else {
      for (let i = 1; i < steps.length; i++) {
        const a = X(steps[i - 1].u), b = X(steps[i].u);
        if (b < gutter || a > width || b - a < 0.3) continue;
        ink.fillStyle = colours.stages[steps[i].stage];
        ink.fillRect(Math.max(a, gutter - 2), y, Math.min(b, width + 2) - Math.max(a, gutter - 2), h);
      }
    }
    if (bar.kind === kOpen) {  // it goes on, nobody knows for how long
      ink.fillStyle = colours.faint;
      for (let i = 0; i < 3; i++) ink.fillRect(x1 + 2 + 5 * i, y, 2, h);
    }
    if (bar.kind === kFailed) {
      ink.strokeStyle = ink.fillStyle = colours.bad;
      ink.lineWidth = 1.5;
      ink.strokeRect(x0, y, Math.max(2, x1 - x0), h);
      if (h > 3) {  // and a cross at its end, not to rely on colour
        const r = Math.min(4, h / 2), x = x1 + r + 2, middle = y + h / 2;
        ink.lineWidth = 2;
        ink.beginPath();
        ink.moveTo(x - r, middle - r), ink.lineTo(x + r, middle + r), ink.moveTo(x - r, middle + r), ink.lineTo(x + r, middle - r);
        ink.stroke();
      }
      ink.lineWidth = 1;
    }
    if (bar === selected) {
      ink.strokeStyle = colours.text;
      ink.lineWidth = 2;
      ink.strokeRect(x0 - 2, y - 1, x1 - x0 + 4, h + 2);
      ink.lineWidth = 1;
    }
  }

  function draw_name(lane, scale_y) {
    const y = lane.y - scale_y, l = lane.lane;
    ink.fillStyle = colours.text;
    ink.textAlign = "left";
    ink.fillText(l.name, 6, y + 9);
    ink.fillStyle = l.failed ? colours.bad : colours.faint;
    const text = l.failed ? `${count(l.failed)} of ${count(l.wqes)} failed` : many(l.wqes, "WQE");
    if (gutter) ink.fillText(text, 6, y + 25, gutter - 10);
    else ink.fillText(text, 6 + 90, y + 9);
  }

  // The bar at a place of the canvas, or the nearest within a few pixels.
  function find(x, y) {
    const at = y + frame.scrollTop;
    const lane = lanes.find((l) => at >= l.rows_y - 2 && at < l.rows_y + l.rows * l.h + 2);
    if (!lane || x < gutter) return null;
    const row = Math.min(lane.rows - 1, Math.max(0, Math.floor((at - lane.rows_y) / lane.h)));
    let best = null, distance = 7;
    for (const bar of lane.bars) {
      if (bar.row !== row && lane.h > 6) continue;
      const d = Math.max(0, X(bar.u0) - x, x - X(bar.u1)) + (bar.row === row ? 0 : 3 * Math.abs(bar.row - row));
      if (d < distance || (d === distance && d === 0)) best = bar, distance = d;
    }
    return best;
  }

  function describe(x, y) {
    const bar = find(x, y);
    if (bar) return `${bar.name}: ${data.opcodes[bar.op]}, ${bytes(bar.size)}, ${data.statuses[bar.status]}` + (bar.took === null ? "" : `, took ${time(bar.took)}`);
    const at = y + frame.scrollTop, lane = lanes.find((l) => at >= l.y && at < l.rows_y);
    const t = back(U(x)), when = moment(data.axis.first + t, (view[1] - view[0]) / 1000);
    if (!lane || x < gutter) return x < gutter ? "" : when;
    const number = Math.floor(placed(t) / data.axis.bin), b = lane.lane.bins.find((v) => v[0] === number);
    return `${lane.lane.name} at ${when}: ` + (b ? `${count(b[3])} under way, ${count(b[1])} begun, ${count(b[2])} failed within ${time(data.axis.bin)}` : "nothing under way");
  }

  function select(bar, how) {
    selected = bar;
    show_detail(detail, bar, how);
    redraw();
  }
  function go_to(bar) {
    if (!bar.shown) {
      filter.lane = filter.op = -1, filter.failed = false;
      for (const c of [by_lane, by_op]) c.value = "-1";
      by_failed.checked = false;
      lay_out();
    }
    const size = Math.max(bar.u1 - bar.u0, 20);
    look_at(bar.u0 - size * 0.6, bar.u1 + size * 0.6);
    reveal(bar);
    select(bar);
  }
  function reveal(bar) {
    const lane = lanes.find((l) => l.number === bar.lane);
    if (!lane) return;
    const y = lane.rows_y + bar.row * lane.h;
    if (y - 40 < frame.scrollTop) frame.scrollTop = lane.y - 4;
    else if (y + 40 > frame.scrollTop + height) frame.scrollTop = y + 60 - height;
  }
  // To the next (1) or the one before (-1) of those that pass; from the chosen one, else from the view's end.
  function step_to(direction, passes) {
    const list = bars.filter((b) => b.shown && passes(b));
    if (!list.length) return;
    const inside = (b) => b.u0 >= view[0] && b.u0 <= view[1];
    let i = selected ? list.indexOf(selected) : -1;
    if (i >= 0) i += direction;
    else if (selected) i = list.findIndex((b) => b.t > selected.t) - (direction < 0 ? 1 : 0);
    else i = list.findIndex(inside);
    const bar = list[(i + list.length) % list.length];
    if (bar.u0 < view[0] || bar.u1 > view[1] || X(bar.u1) - X(bar.u0) < 3) return go_to(bar);
    reveal(bar);
    select(bar);
  }

  const keys = {
    "+": () => zoom(0.7), "=": () => zoom(0.7), "w": () => zoom(0.7), "-": () => zoom(1 / 0.7), "s": () => zoom(1 / 0.7),
    "ArrowLeft": () => pan(-0.15), "a": () => pan(-0.15), "ArrowRight": () => pan(0.15), "d": () => pan(0.15),
    "ArrowUp": () => { frame.scrollTop -= 60; }, "ArrowDown": () => { frame.scrollTop += 60; },
    "PageUp": () => { frame.scrollTop -= height; }, "PageDown": () => { frame.scrollTop += height; },
    "Home": () => look_at(0, view[1] - view[0]), "End": () => look_at(total - (view[1] - view[0]), total),
    "0": () => look_at(0, total), "n": () => step_to(1, () => true), "p": () => step_to(-1, () => true),
    "f": () => step_to(1, (b) => b.kind === kFailed), "Enter": () => selected && go_to(selected), "Escape": () => select(null),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  canvas.addEventListener("wheel", (event) => {
    // Zoomed out entirely, the wheel is the page's.
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      return pan(Math.sign(event.deltaX || event.deltaY) * 0.1);
    }
    if (event.deltaY > 0 && view[1] - view[0] >= total) return;
    event.preventDefault();
    zoom(Math.pow(1.0018, Math.max(-400, Math.min(400, event.deltaY * (event.deltaMode ? 30 : 1)))), event.offsetX);
  }, { passive: false });

  const fingers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (fingers.size === 1) moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = [event.offsetX, event.offsetY], old = fingers.get(event.pointerId);
    if (!old) { pointed.textContent = describe(...now); return; }
    const per_pixel = (view[1] - view[0]) / (width - gutter);
    if (fingers.size === 1) {
      moved += Math.abs(now[0] - old[0]) + Math.abs(now[1] - old[1]);
      if (moved > 4) {
        canvas.classList.add("dragging");
        look_at(view[0] - (now[0] - old[0]) * per_pixel, view[1] - (now[0] - old[0]) * per_pixel);
        frame.scrollTop -= now[1] - old[1];
      }
    } else if (fingers.size === 2) {
      moved = 9;
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      zoom(Math.max(10, Math.abs(old[0] - other[0])) / Math.max(10, Math.abs(now[0] - other[0])), (now[0] + other[0]) / 2);
    }
    fingers.set(event.pointerId, now);
  });
  const lift = (event) => {
    if (fingers.delete(event.pointerId) && event.type === "pointerup" && moved <= 4) {
      const bar = find(event.offsetX, event.offsetY);
      if (bar) select(bar);
    }
    canvas.classList.remove("dragging");
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  frame.addEventListener("scroll", redraw);

  const choice = (label, names, chosen) => el("select", { "aria-label": label, change: (event) => chosen(Number(event.target.value)) },
    el("option", { value: -1 }, `${label}: all`), ...names.map((name, i) => el("option", { value: i }, name)));
  const by_lane = choice("Queue", data.lanes.map((l) => l.name), (i) => { filter.lane = i; frame.scrollTop = 0; lay_out(); });
  const by_op = choice("Opcode", data.opcodes, (i) => { filter.op = i; lay_out(); });
  const by_failed = el("input", { type: "checkbox", change: (event) => { filter.failed = event.target.checked; lay_out(); } });
  const by_cut = el("input", { type: "checkbox", change: (event) => {
    const middle = [back(view[0]), back(view[1])];
    cutting = event.target.checked;
    lay_out();
    look_at(place(middle[0]), Math.max(place(middle[0]) + 1, place(middle[1])));
  } });
  by_cut.checked = cutting;
  const button = (text, title, does) => el("button", { type: "button", title, click: does }, text);
  const tools = el("div.tools", null,
    button("+", "zoom in (+)", () => zoom(0.6)), button("\u2212", "zoom out (-)", () => zoom(1 / 0.6)), button("All", "all of it (0)", () => look_at(0, total)),
    button("\u25c2", "to the left", () => pan(-0.3)), button("\u25b8", "to the right", () => pan(0.3)),
    button("Next WQE", "n; p: the one before", keys.n), data.bars_failed ? button("Next failed", "f", keys.f) : null,
    data.lanes.length > 1 ? by_lane : null, data.opcodes.length > 1 ? by_op : null,
    data.bars_failed ? el("label", null, by_failed, "only failed") : null,
    cuts.length ? el("label", null, by_cut, `cut out ${many(cuts.length, "idle stretch", "idle stretches")} (${time(span - busy)})`) : null);

  return {
    bars, by_told, go_to, canvas, parts: { tools, ruler, frame, pointed, overlap, detail },
    start() {
      read_colours();
      lay_out();
      look_at(0, total);
      select(null);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { read_colours(); redraw(); });
      new ResizeObserver(() => { if (frame.clientWidth !== width) resize(); }).observe(frame);
    },
  };
}

// What is known of one WQE.
function show_detail(detail, bar) {
  detail.textContent = "";
  if (!bar) {
    detail.append(note("Click or tap a WQE, or press n in the time line: its stages and times appear here."));
    return;
  }
  const told = bar.told >= 0 ? data.told[bar.told] : null, begin = data.axis.first + bar.t;
  detail.append(el("h3", null, el("span.mono", null, bar.name)),
    el("p", null, bar.kind === kSeen ? data.opcodes[bar.op] : `${data.opcodes[bar.op]}, ${bytes(bar.size)}, `, bar.kind === kSeen ? null : el(bar.kind === kFailed ? "span.bad" : "span", null, data.statuses[bar.status]),
      bar.kind === kSeen ? ": known by its packets alone, as this trace lacks its requester" : bar.took === null ? ", not complete" : `, in ${time(bar.took)}`, `; begun at ${us(begin)} us`));
  const rows = bar.steps.map((s, i) => [
    el("span", null, el("i.swatch", { style: `background: var(--s${s.stage}); margin-right: 6px` }), data.stages[s.stage]),
    `+${time(s.t - bar.t)}`, i ? time(s.t - bar.steps[i - 1].t) : ""]);
  detail.append(table(["stage", "n:since begin", "n:step"], rows, { label: "stages" }));
  if (told) detail.append(el("h3", null, "Why"), reasons(told.why, told.start, told.wqe));
  else detail.append(el("p.faint", null, "Why: ", el("code", null, `hcasim trace why FILE ${bar.name}`)));
}
