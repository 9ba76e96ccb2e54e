// SPDX-License-Identifier: BSD-3-Clause
// What the parts of a page share. The data come from a trace, so they only ever become text nodes.
const data = JSON.parse(document.getElementById("data").textContent);

// An element: its name with classes ("td.n"), attributes, children (texts and elements).
function el(what, attributes, ...children) {
  const [name, ...classes] = what.split(".");
  const e = document.createElement(name);
  if (classes.length) e.className = classes.join(" ");
  return furnish(e, attributes, children);
}

function svg(name, attributes, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function furnish(e, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") e.addEventListener(key, value);
    else if (value !== null && value !== undefined) e.setAttribute(key, String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) e.append(child);
  return e;
}

function count(n) { return Number(n).toLocaleString("en-US"); }
function many(n, one, more) { return `${count(n)} ${n === 1 ? one : more || one + "s"}`; }

// ps as the tool has it: ns, us or ms.
function time(ps) {
  const size = Math.abs(ps);
  if (size < 1e6) return `${(ps / 1e3).toFixed(1)} ns`;
  if (size < 1e9) return `${(ps / 1e6).toFixed(3)} us`;
  if (size < 1e12) return `${(ps / 1e9).toFixed(3)} ms`;
  return `${(ps / 1e12).toFixed(3)} s`;
}
// A moment, in a unit that shows steps of `step` ps.
function moment(ps, step) {
  const [unit, name] = Math.abs(ps) >= 1e12 && step >= 1e6 ? [1e12, "s"] : step >= 1e8 ? [1e9, "ms"] : step >= 100 ? [1e6, "us"] : [1e3, "ns"];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  return `${(ps / unit).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${name}`;
}
function us(ps) {
  return (ps / 1e6).toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 });
}
function bytes(n) {
  if (n < 10240) return `${count(n)} B`;
  if (n < 10 * 1048576) return `${(n / 1024).toFixed(1)} KiB`;
  if (n < 10 * 1073741824) return `${(n / 1048576).toFixed(1)} MiB`;
  return `${(n / 1073741824).toFixed(1)} GiB`;
}
function percent(part, whole) { return whole ? `${(100 * part / whole).toFixed(1)} %` : "-"; }

// The round step (1, 2, 5 times a power of ten) of which `most` or fewer fit into a span.
function round_step(span, most) {
  const least = Math.max(span / most, 1e-3);
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  for (const n of [1, 2, 5, 10]) if (n * power >= least) return n * power;
  return 10 * power;
}

// heads: ["name", "n:number", "words:..."]; a class before the colon. Cells: texts or elements.
function table(heads, rows, options) {
  const parts = heads.map((h) => (h.includes(":") ? h.split(":") : ["", h]));
  const cell = (tag, kind, value) => el(kind ? `${tag}.${kind}` : tag, tag === "th" ? { scope: "col" } : null, value);
  return el("div.scroll", { tabindex: 0, role: "region", "aria-label": (options && options.label) || "table" },
    el("table", { class: options && options.class },
      el("thead", null, el("tr", null, ...parts.map(([kind, name]) => cell("th", kind === "words" ? "" : kind, name)))),
      el("tbody", null, ...rows.map((row) => el("tr", null, ...row.map((value, i) => cell("td", parts[i][0], value)))))));
}

// A part of the page, in the list of links at its head.
const parts = [];
function part(id, title, ...children) {
  parts.push([id, title]);
  return el("section", { id, "aria-label": title }, el("h2", null, title), ...children.filter((c) => c));
}
function note(text) { return el("p.faint", null, ...coded(text)); }
// What stands between backquotes is what one types.
function coded(text) { return text.split("`").map((t, i) => (i % 2 ? el("code", null, t) : t)); }

// The records that prove something: [time, HCA, trace point, WQE, words]; times since `since`. A record of the WQE
// that is spoken of does not name it again.
function proof(records, since, marked, spoken_of) {
  return el("ul.proof", null, ...records.map((r) => el(r === marked ? "li.this" : "li", { title: r[2] },
    el("span", null, since === null ? `${us(r[0])} us` : `+${time(r[0] - since)}`),
    el("span", null, `HCA ${r[1]}`),
    el("span", null, (r[3] && r[3] !== spoken_of ? `${r[3]}: ` : "") + r[4]))));
}
function reasons(list, since, spoken_of) {
  const name = spoken_of ? spoken_of.split(".")[0] : "";
  return el("ul.reasons", null, ...list.map(([text, records]) =>
    el("li", null, ...coded(text), records.length ? proof(records, since, null, name) : null)));
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
