"use strict";
/* The problem browser. All data is in the page; text is set as text, never as HTML. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const body = document.querySelector("#problems tbody");
  const view = document.getElementById("problem");
  const search = document.getElementById("search");
  const order = document.getElementById("order");
  const WHO = ["only the funnel", "only self-consistency", "both right", "both wrong"];

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
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

  const STATES = { b: "banked", p: "pruned", f: "finished" };
  let shown = null; // how to draw the open problem once more
  const funnel = (p) => {
    const canvas = element("canvas", { class: "funnel", role: "img" });
    const told = element("p", { class: "note", "aria-live": "polite" });
    const usual = "Pale: what self-consistency would have generated. Behind each lane stands the answer of the whole text, ✓ where it is correct.";
    const drawn = {
      checkpoints: data.checkpoints,
      answer: p.fotAnswer < 0 ? null : answer(p.fotAnswer),
      lanes: p.lanes.map(([tokens, stop, fate, voted, right, , densities]) => ({
        tokens: stop, full: tokens, state: STATES[fate], isRight: Boolean(right),
        answer: voted < 0 ? null : answer(voted),
        density: densities[densities.length - 1],
        history: densities.map((density, i) => [(stop * (i + 1)) / densities.length, density]),
      })),
    };
    canvas.style.height = `${46 + 15 * p.lanes.length}px`;
    canvas.setAttribute("aria-label", Funnel.summary(drawn));
    told.textContent = usual;
    let layout = null, selected = -1;
    const draw = () => { layout = Funnel.draw(canvas, drawn, { selected }); };
    const point = (next) => {
      if (next === selected) return;
      selected = next;
      const lane = drawn.lanes[next];
      told.textContent = lane ? `Rollout ${next}: ${lane.state} at ${number(lane.tokens)} of ${number(lane.full)} tokens, ${lane.density} markers per 1,000 characters, full answer ${lane.answer === null ? "none" : lane.answer}.` : usual;
      draw();
    };
    canvas.addEventListener("pointermove", (event) => point(layout.laneAt(event.offsetY)));
    canvas.addEventListener("pointerleave", () => point(-1));
    return { nodes: [canvas, told, legend(p)], draw };
  };

  const legend = (p) => {
    const made = element("div", { class: "legend" });
    const scale = element("canvas", { class: "scale", "aria-hidden": "true" });
    made.append(element("span", {}, "calm ", scale, " hesitating"));
    const marks = Object.entries(STATES).map(([fate, name]) => {
      const canvas = element("canvas", { class: "mark", "aria-hidden": "true" });
      made.append(element("span", {}, canvas, `${name} (${p.lanes.filter((lane) => lane[2] === fate).length})`));
      return [canvas, name];
    });
    made.draw = () => { Funnel.scale(scale); for (const [canvas, name] of marks) Funnel.mark(canvas, name); };
    return made;
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
    const said = `${WHO[who(p)][0].toUpperCase()}${WHO[who(p)].slice(1)}${who(p) < 2 ? " is right" : ""}. ` +
      `Self-consistency answers ${answer(p.scAnswer)}, the funnel ${answer(p.fotAnswer)}; the reference is ${p.gold === null ? "unknown" : p.gold}. ` +
      `${percent(p.saved)} of the attention is saved.`;
    const { nodes, draw } = funnel(p);
    view.replaceChildren(element("h3", {}, p.id), element("p", {}, said), ...nodes,
      element("div", { class: "votes" }, votes("votes of sc", all, p.scAnswer), votes("votes of fot", ours, p.fotAnswer)), ...texts(p));
    view.hidden = false;
    shown = () => { draw(); nodes[2].draw(); }; // a canvas has no size before it is shown
    shown();
    reach();
    view.scrollIntoView({ block: "nearest" });
  };

  const store = document.getElementById("texts");
  const kept = store ? JSON.parse(store.textContent) : null;
  const texts = (p) => {
    if (!kept) return [];
    const [question, tails] = kept[p.at];
    const made = question === null ? [] : [element("details", {}, element("summary", {}, "The question"), element("pre", {}, question))];
    tails.forEach((tail, at) => made.push(element("details", {}, element("summary", {}, `End of rollout ${at} (${STATES[p.lanes[at][2]]})`), element("pre", {}, tail))));
    return made;
  };

  // What scrolls can be reached with the keyboard, what does not is no stop on the way.
  const reach = () => {
    for (const box of document.querySelectorAll(".scroll, figure, pre")) {
      const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      box.toggleAttribute("tabindex", scrolls);
      if (scrolls) box.tabIndex = 0;
    }
  };
  document.addEventListener("toggle", reach, true);

  const redraw = () => { if (shown) shown(); };
  window.addEventListener("resize", () => { redraw(); reach(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  search.addEventListener("input", list);
  order.addEventListener("change", list);
  list();
  reach();
})();
