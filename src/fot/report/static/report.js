"use strict";
/* The problem browser. All data is in the page; text is set as text, never as HTML. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const body = document.querySelector("#problems tbody");
  const view = document.getElementById("problem");
  const search = document.getElementById("search");
  const order = document.getElementById("order");
  const NS = "http://www.w3.org/2000/svg";
  const WHO = ["only the funnel", "only self-consistency", "both right", "both wrong"];

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const shape = (name, attributes = {}, text = "") => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  };
  const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  const number = (value) => value.toLocaleString("en-US");
  const percent = (value) => (100 * value).toFixed(1) + "%";
  const answer = (at) => (at < 0 ? "none" : data.answers[at]);
  const who = (p) => (p.fot && !p.sc ? 0 : p.sc && !p.fot ? 1 : p.sc ? 2 : 3);
  const spent = (p) => {
    let full = 0, charged = 0;
    for (const [tokens, stop] of p.lanes) { full += tokens * tokens; charged += stop * stop; }
    return full ? 1 - charged / full : 0;
  };

  const problems = data.problems.map(([model, benchmark, id, gold, scAnswer, fotAnswer, sc, fot, lanes], at) =>
    ({ at, model: data.models[model], benchmark: data.benchmarks[benchmark], id, gold, scAnswer, fotAnswer, sc, fot, lanes }));
  for (const p of problems) {
    p.saved = spent(p);
    p.right = p.lanes.filter((lane) => lane[4]).length / p.lanes.length;
    p.text = [p.model, p.benchmark, p.id, WHO[who(p)], answer(p.scAnswer), answer(p.fotAnswer)].join(" ").toLowerCase();
  }
  const orders = {
    won: (a, b) => who(a) - who(b) || a.at - b.at,
    saved: (a, b) => b.saved - a.saved || a.at - b.at,
    hard: (a, b) => a.right - b.right || a.at - b.at,
    pool: (a, b) => a.at - b.at,
  };

  const list = () => {
    const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const found = problems.filter((p) => wanted.every((word) => p.text.includes(word))).sort(orders[order.value]);
    document.getElementById("found").textContent = `${number(found.length)} of ${number(problems.length)}`;
    body.replaceChildren(...found.map((p) => {
      const row = element("tr", { tabindex: "0", "data-at": p.at, "aria-selected": "false" },
        element("td", {}, p.id), element("td", {}, `${p.model}, ${p.benchmark}`), element("td", {}, WHO[who(p)]),
        element("td", { class: "n" }, percent(p.right)), element("td", { class: "n" }, percent(p.saved)));
      row.addEventListener("click", () => show(p, row));
      row.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(p, row); } });
      return row;
    }));
  };

  const LOOK = { b: ["banked", "var(--s0)"], p: ["pruned", "var(--s1)"], f: ["ran to its end", "var(--s2)"] };
  const lanes = (p) => {
    const left = 34, wide = 620, step = 15, top = 20, most = Math.max(1, ...p.lanes.map((lane) => lane[0]));
    const height = top + p.lanes.length * step + 18, scale = wide / most;
    const svg = shape("svg", { viewBox: `0 0 ${left + wide + 150} ${height}`, class: "lanes", role: "img", "aria-label": `Rollouts of ${p.id}` });
    const defs = shape("defs");
    const hatch = shape("pattern", { id: "lane-hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    hatch.append(shape("rect", { width: 6, height: 6, fill: "var(--s1)" }), shape("rect", { width: 1.6, height: 6, fill: "var(--paper)" }));
    defs.append(hatch);
    svg.append(defs);
    for (const mark of data.checkpoints.filter((mark) => mark <= most)) {
      const x = left + mark * scale;
      svg.append(shape("line", { x1: x, x2: x, y1: top - 4, y2: height - 14, stroke: "var(--faint)" }));
      svg.append(shape("text", { x, y: top - 8, "text-anchor": "middle", class: "dim" }, number(mark)));
    }
    p.lanes.forEach(([tokens, stop, fate, voted, right], at) => {
      const y = top + at * step;
      svg.append(shape("text", { x: left - 6, y: y + 9, "text-anchor": "end", class: "dim" }, String(at)));
      svg.append(shape("rect", { x: left, y, width: tokens * scale, height: 10, fill: "var(--faint)" }));
      const bar = shape("rect", { x: left, y, width: stop * scale, height: 10, fill: fate === "p" ? "url(#lane-hatch)" : LOOK[fate][1] });
      bar.append(shape("title", {}, `rollout ${at}: ${LOOK[fate][0]} at ${number(stop)} of ${number(tokens)} tokens, full answer ${answer(voted)}`));
      svg.append(bar);
      svg.append(shape("text", { x: left + wide + 8, y: y + 9 }, `${right ? "✓ " : ""}${short(answer(voted), 18)}`));
    });
    svg.append(shape("text", { x: left, y: height - 3, class: "dim" }, "tokens; pale: what self-consistency would have generated; at the right the answer of the whole text, ✓ when correct"));
    return svg;
  };

  const votes = (title, counts, winner) => {
    const table = element("table", {}, element("caption", {}, title));
    for (const [at, count] of [...counts.entries()].sort((a, b) => b[1] - a[1]).slice(0, 8)) {
      table.append(element("tr", at === winner ? { class: "strong" } : {}, element("td", {}, short(answer(at), 40)), element("td", { class: "n" }, String(count))));
    }
    return table;
  };

  const show = (p, row) => {
    for (const other of body.querySelectorAll("[aria-selected=true]")) other.setAttribute("aria-selected", "false");
    row.setAttribute("aria-selected", "true");
    const all = new Map(), ours = new Map();
    for (const [, , fate, voted, , banked] of p.lanes) {
      if (voted >= 0) all.set(voted, (all.get(voted) || 0) + 1);
      const cast = fate === "b" ? banked : fate === "f" ? voted : -1;
      if (cast >= 0) ours.set(cast, (ours.get(cast) || 0) + 1);
    }
    const legend = element("div", { class: "legend" });
    for (const [fate, [name, colour]] of Object.entries(LOOK)) {
      const swatch = shape("svg", { width: 14, height: 10 });
      swatch.append(shape("rect", { width: 14, height: 10, fill: fate === "p" ? "url(#lane-hatch)" : colour }));
      legend.append(element("span", {}, swatch, `${name} (${p.lanes.filter((lane) => lane[2] === fate).length})`));
    }
    const said = `${WHO[who(p)][0].toUpperCase()}${WHO[who(p)].slice(1)}${who(p) < 2 ? " is right" : ""}. ` +
      `Self-consistency answers ${answer(p.scAnswer)}, the funnel ${answer(p.fotAnswer)}; the reference is ${p.gold === null ? "unknown" : p.gold}. ` +
      `${percent(p.saved)} of the attention is saved.`;
    view.replaceChildren(element("h4", {}, p.id), element("p", {}, said), lanes(p), legend,
      element("div", { class: "votes" }, votes("votes of sc", all, p.scAnswer), votes("votes of fot", ours, p.fotAnswer)), ...texts(p));
    view.hidden = false;
    view.scrollIntoView({ block: "nearest" });
  };

  const store = document.getElementById("texts");
  const kept = store ? JSON.parse(store.textContent) : null;
  const texts = (p) => {
    if (!kept) return [];
    const [question, tails] = kept[p.at];
    const made = question === null ? [] : [element("details", {}, element("summary", {}, "The question"), element("pre", {}, question))];
    tails.forEach((tail, at) => made.push(element("details", {}, element("summary", {}, `End of rollout ${at} (${LOOK[p.lanes[at][2]][0]})`), element("pre", {}, tail))));
    return made;
  };

  search.addEventListener("input", list);
  order.addEventListener("change", list);
  list();
})();
