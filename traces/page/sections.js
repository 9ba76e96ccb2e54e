// SPDX-License-Identifier: BSD-3-Clause
// The parts of the page, top to bottom.

function head() {
  const card = (value, name, alarm) => el(alarm ? "div.card.alarm" : "div.card", null, el("b", null, value), el("span", null, name));
  const w = data.wqes, c = data.commands;
  const errors = data.errors_count;
  const out = [
    el("h1", null, data.file.split("/").pop()),
    el("p.faint", null, data.file.includes("/") ? `${data.file}: ` : "", `${many(data.records, "record")} of ${many(data.hcas.length, "HCA")}, from ${time(data.first)} to ${time(data.last)} of simulated time.`,
      data.unknown ? ` ${count(data.unknown)} records are of points that this version does not know.` : "",
      data.foreign_packets ? ` ${count(data.foreign_packets)} request packets came from outside of this trace.` : ""),
    data.warning ? el("p.warning", { role: "alert" }, `The file is damaged: ${data.warning}. What could be read is shown.`) : null,
    el("div.cards", null,
      card(time(data.last - data.first), "simulated time"),
      card(count(w.count), ["WQEs", w.open ? `${count(w.open)} of them not complete` : "", w.packets ? `${count(w.packets)} known by their packets alone` : ""].filter((t) => t).join(", ")),
      card(count(w.failed), "WQEs failed", w.failed > 0),
      card(bytes(w.bytes), "payload, without error"),
      card(count(c.count), c.open ? `commands, ${count(c.open)} never answered` : "commands", c.open > 0),
      card(count(c.failed), "commands failed", c.failed > 0),
      card(count(errors), "errors and retries", errors > 0),
      card(count(data.rules_broken), "times a rule was broken", data.rules_broken > 0),
      card(count(data.faults_count), "faults injected", data.faults_count > 0))];
  const overview = part("summary", "What it holds",
    el("h3", null, "HCAs"),
    table(["HCA", "n:records", "n:WQEs", "n:errors", "n:functions"], data.hcas.map((h) => [String(h.hca), ...[h.records, h.wqes, h.errors, h.functions].map(count)])),
    data.ops.length ? el("h3", null, "WQEs by opcode and status") : null,
    data.ops.length ? table(["opcode", "status", "n:count", "n:bytes", "n:median", "n:p99", "n:longest"],
      data.ops.map((o) => [o.opcode, status(o.status), count(o.count), count(o.bytes), ...o.times.map((t) => (t ? time(t) : "-"))])) : null,
    data.ops_left_out ? note(`${count(data.ops_left_out)} more are left out.`) : null);
  return [...out, overview];
}

function status(name) { return name === "OK" || name === "open" ? name : el("span.bad", null, name); }

function timeline_part(line) {
  if (!data.bars.length) return null;
  const used = new Set();
  for (const bar of line.bars) bar.steps.forEach((s, i) => { if (i) used.add(s.stage); });
  const some = data.bars.length < data.wqes_placed;
  const texts = [`${many(data.wqes_placed, "WQE")} in ${many(data.lanes.length + data.lanes_left_out, "send queue")}. Each lane is a queue; its strip tells how many of all WQEs are under way; each bar below it is one WQE.`];
  if (some) texts.push(`Left out: ${count(data.wqes_placed - data.bars.length)} WQEs have no bar. Of ${count(data.wqes_placed)}, ${count(data.bars.length)} are drawn one by one: ` +
    `the slowest, ${data.wqes.failed ? `${count(data.bars_failed)} of the ${count(data.wqes.failed)} that failed, ` : ""}and others at even distances.`);
  if (data.lanes_left_out) texts.push(`${count(data.lanes_left_out)} queues with ${count(data.wqes_in_other_lanes)} WQEs have no lane.`);
  const p = line.parts;
  return part("timeline", "Time line",
    el("p", { id: "left-out" }, texts.join(" ")),
    el("ul.legend", { "aria-label": "colours: the stage that a WQE comes to" },
      el("li", null, "Time until:"),
      ...data.stages.map((name, i) => (used.has(i) ? el("li", null, el("i.swatch", { style: `background: var(--s${i})${i === data.stages.length - 1 ? "; height: 3px" : ""}` }), name) : null)),
      data.bars_failed ? el("li", null, el("i.swatch", { style: "border: 2px solid var(--bad)" }), "failed \u2715") : null,
      line.bars.some((b) => b.kind === kOpen) ? el("li", null, el("b", { style: "color: var(--faint)" }, "\u2759\u2759\u2759"), "not complete") : null),
    p.tools,
    el("div.view", null, el("div", null, el("div.stage", null, p.ruler, p.frame), p.pointed, p.overlap,
      el("p.faint", { id: "keys" }, "Wheel or ", el("kbd", null, "+"), " ", el("kbd", null, "-"), " zoom, drag or arrows move, ", el("kbd", null, "0"), " shows all, ",
        el("kbd", null, "n"), " ", el("kbd", null, "p"), " go from WQE to WQE, ", el("kbd", null, "f"), " to the next that failed, ",
        el("kbd", null, "Enter"), " zooms to the chosen one.")), p.detail));
}

// WQEs with their `why`, each to be unfolded. A narrow screen has no heads: each figure says what it is.
function tellings(list, line, with_median) {
  const columns = with_median
    ? [["n", "median", (told) => time(told.median)], ["", "times the median", (told) => (told.took / told.median).toFixed(1)]]
    : [["", "status", (told) => status(told.status)], ["", "", (told) => [told.again ? `sent again ${many(told.again, "time")}` : "", told.naks ? many(told.naks, "NAK") : ""].filter((t) => t).join(", ")]];
  columns.unshift(["", "opcode", (told) => told.opcode], ["n", "bytes", (told) => bytes(told.bytes)],
    ["n", "took", (told) => (told.took === undefined ? "not complete" : time(told.took))]);
  const span = (kind) => (kind ? `span.${kind}` : "span"), labelled = ["took", "median", "times the median"];
  return el("div.tellings", null,
    el("div.heads", { "aria-hidden": "true" }, el("span"), el("span", null, "WQE"), ...columns.map(([kind, name]) => el(span(kind), null, name))),
    ...list.map(([told, i]) => {
      const bar = line.by_told.get(i);
      return el("details", null,
        el("summary", null, el("span.mono", null, told.wqe),
          ...columns.map(([kind, name, of]) => el(span(kind), { "data-label": labelled.includes(name) ? `${name} ` : null }, of(told)))),
        el("div.inside", null, reasons(told.why, told.start, told.wqe),
          bar ? el("button", { type: "button", click: () => { line.go_to(bar); document.getElementById("timeline").scrollIntoView(); line.canvas.focus({ preventScroll: true }); } }, "Show in the time line")
            : note("Its queue has no lane in the time line.")));
    }));
}

function failed_and_slow(line) {
  const all = data.told.map((t, i) => [t, i]), failed = all.slice(0, data.told_failed), slow = all.slice(data.told_failed);
  const out = [];
  if (failed.length)
    out.push(part("failed", "Failed WQEs, and why",
      note(`${many(failed.length, "WQE")} of ${count(data.wqes.failed + data.wqes.open)} that failed or did not complete: first one of each queue and status, those that failed by themselves before those that were flushed. Times in the proof: since the WQE began.`),
      tellings(failed, line, false)));
  if (slow.length)
    out.push(part("slow", "Slowest WQEs, and why",
      note("Beside the median of the successful ones of the same HCA, QP, opcode and length; those that exceed it by the greatest factor first, up to three of a kind."),
      tellings(slow, line, true)));
  else if (data.wqes.count)
    out.push(part("slow", "Slowest WQEs", note("No WQE took half as long again as its like (same HCA, QP, opcode and length, four or more of them).")));
  return out;
}

function record_table(records) {
  return table(["n:at, us", "HCA", "point", "WQE", "words:what"], records.map((r) => [us(r[0]), r[1], r[2], el("span.mono", null, r[3]), r[4]]));
}

function errors() {
  if (!data.error_points.length) return null;
  return part("errors", "Errors and retries",
    table(["point", "n:count", "words:meaning"], data.error_points.map(([name, n, help]) => [name, count(n), help])),
    data.errors.length ? el("details", null, el("summary", null, data.errors.length < data.errors_count ? `The first ${count(data.errors.length)} of ${count(data.errors_count)}` : `All ${count(data.errors_count)}, one by one`),
      el("div.inside", null, record_table(data.errors))) : null);
}

function rules() {
  if (!data.rules.length) return null;
  return part("rules", "Rules broken by the driver",
    note("Each with the records before and after the first times that it was broken. All of them: `hcasim trace rules FILE`; all rules: `hcasim rules`."),
    ...data.rules.map((rule) => el("details", null,
      el("summary", null, el("b", null, rule.rule), ` \u00d7 ${count(rule.count)}`, rule.severity ? ` (${rule.severity})` : "", ": ", rule.text),
      el("div.inside", null, rule.source ? el("p.faint", null, `Source: ${rule.source}`) : null,
        ...rule.examples.map((e) => el("div", null, el("p", null, `At ${us(e.broken[0])} us`, e.bytes ? el("span", null, "; the wrong bytes: ", el("code", null, e.bytes)) : ""),
          proof([...e.before, e.broken, ...e.after], null, e.broken)))))),
    data.rules_left_out ? note(`${count(data.rules_left_out)} more rules are left out.`) : null);
}

function commands() {
  if (!data.commands.count) return null;
  const row = (c) => [el("span.mono", null, c.name), c.command, us(c.start), c.took === undefined ? "-" : us(c.took), status(c.status), c.syndrome ? `0x${c.syndrome.toString(16)}` : ""];
  const heads = ["tight:command", "opcode", "n:at, us", "n:took, us", "status", "syndrome"];
  return part("commands", "Commands",
    data.failed_commands.length ? el("h3", null, "Failed, or never answered") : null,
    data.failed_commands.length ? table(heads, data.failed_commands.map(row)) : null,
    data.failed_commands.length < data.commands.failed + data.commands.open ? note(`${count(data.failed_commands.length)} of ${count(data.commands.failed + data.commands.open)}, first one of each opcode and status; all of them: \`hcasim trace commands FILE --failed\`.`) : null,
    data.failed_commands.some((c) => c.why) ? el("details", null, el("summary", null, "Why"), el("div.inside", null,
      ...data.failed_commands.filter((c) => c.why).map((c) => el("div", null, el("p", null, el("span.mono", null, c.name), ` ${c.command}, ${c.status}`), reasons(c.why, c.start))))) : null,
    el("h3", null, "By opcode"),
    table(["opcode", "n:count", "n:failed", "n:median", "n:p99", "n:longest"],
      data.command_kinds.map((k) => [k.command, count(k.count), k.failed ? el("span.bad", null, count(k.failed)) : "0", ...k.times.map(time)])),
    data.command_kinds_left_out ? note(`${count(data.command_kinds_left_out)} more are left out.`) : null,
    el("details", null, el("summary", null, `The slowest ${count(data.slow_commands.length)}`), el("div.inside", null, table(heads, data.slow_commands.map(row)))));
}

function faults() {
  if (!data.faults_count) return null;
  return part("faults", "Faults injected",
    table(["kind/action", "n:count"], data.fault_kinds.map(([name, n]) => [name, count(n)])),
    el("details", null, el("summary", null, data.faults.length < data.faults_count ? `The first ${count(data.faults.length)} of ${count(data.faults_count)}` : `All ${count(data.faults_count)}`),
      el("div.inside", null, record_table(data.faults))));
}

function coverage() {
  const c = data.coverage;
  if (!c) return null;
  const meter = (hit, all) => el("span.meter", { role: "img", "aria-label": percent(hit, all) }, el("i", { style: `width: ${all ? 100 * hit / all : 0}%` }));
  const heads = ["words:file", "n:lines reached", "n:lines", "n:", "", "n:functions reached", "n:functions", "n:", ""];
  const row = ([name, lh, l, fh, f], shown) => [shown || name, count(lh), count(l), percent(lh, l), meter(lh, l), count(fh), count(f), percent(fh, f), meter(fh, f)];
  return part("coverage", "Coverage of the guest's driver",
    note(`From ${c.file}: ${many(c.files, "file")} in ${many(c.folders.length + c.folders_left_out, "folder")}.`),
    table(["words:folder", ...heads.slice(1)], [...c.folders.map((f) => row(f.sum)), row(c.total, el("b", null, "all"))], { label: "coverage by folder" }),
    ...c.folders.map((f) => el("details", null, el("summary", null, `${f.sum[0]}: ${many(f.count, "file")}, ${percent(f.sum[1], f.sum[2])} of lines, ${percent(f.sum[3], f.sum[4])} of functions`),
      el("div.inside", null, table(heads, f.files.map((file) => row(file)), { label: "coverage by file" })))),
    c.left_out ? note(`${count(c.left_out)} files are left out of the lists; the sums have them.`) : null);
}

const line = make_timeline(), page = document.getElementById("page");
document.title = `${data.file.split("/").pop()} - hcasim trace`;
const [title, about, ...top_parts] = head();
const rest = [timeline_part(line), ...failed_and_slow(line), latencies(), rates(), errors(), rules(), commands(), faults(), coverage()];
page.append(title, about, el("nav", { "aria-label": "parts of the page" }, ...parts.map(([id, name]) => el("a", { href: `#${id}` }, name))), ...top_parts.filter((e) => e), ...rest.filter((e) => e));
if (data.bars.length) line.start();
page.dataset.ready = "yes";
