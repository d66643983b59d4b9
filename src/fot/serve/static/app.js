/* The live view: listens to /live/events, keeps all runs, and draws what has changed once per frame. */
"use strict";

(() => {
  const HISTORY = 96; // points of a lane's density that are kept
  const CARDS_A_FRAME = 6;
  const CARD_MS = 1000; // a card is drawn at most this often while its run goes on
  const STATES = {
    running: "still thinks",
    finished: "came to its own end; votes if it has answered",
    banked: "has answered: votes, and thinks no more",
    pruned: "hesitated most at a checkpoint: stopped, no vote",
    cancelled: "stopped: the vote was decided, or the run cut short",
    failed: "lost by the server behind",
  };
  const $ = (id) => document.getElementById(id);
  const runs = new Map();
  const cards = new Map();
  const dirty = new Set();
  let chosen = null;
  let isPinned = false; // chosen by the reader, not by being the newest
  let lane = -1;
  let layout = null;
  let source = null;
  let isAsked = false;
  let later = 0;
  const stale = new Set(); // cards to be drawn
  const sight = new IntersectionObserver((seen) => {
    for (const entry of seen) {
      const card = cards.get(entry.target.dataset.run);
      if (card) card.isSeen = entry.isIntersecting;
    }
    ask();
  });
  let textTimer = 0;

  const make = (tag, more, ...inside) => {
    const made = Object.assign(document.createElement(tag), more);
    made.append(...inside);
    return made;
  };
  const number = (value) => Math.round(value).toLocaleString("en");
  const tokensOf = (run) => run.lanes.reduce((sum, each) => sum + each.tokens, 0);

  // --- what comes

  const laneOf = ([tokens, density, state, answer, history]) => ({ tokens, density, state, answer, history: history || [] });

  function update(target, told) {
    Object.assign(target, told, { lanes: target.lanes });
    for (const [key, values] of Object.entries(told.lanes)) {
      const next = laneOf(values);
      const old = target.lanes[key];
      next.history = old.history;
      const last = next.history.length ? next.history[next.history.length - 1][0] : 0;
      if (next.tokens > last) next.history.push([next.tokens, next.density]);
      if (next.history.length > HISTORY) next.history = next.history.filter((_, i, all) => (all.length - 1 - i) % 2 === 0);
      target.lanes[key] = next;
    }
  }

  function onSnapshot(event) {
    runs.clear();
    for (const told of JSON.parse(event.data).runs) runs.set(told.id, { ...told, lanes: told.lanes.map(laneOf) });
    for (const id of [...cards.keys()]) if (!runs.has(id)) dropCard(id);
    for (const id of runs.keys()) dirty.add(id);
    if (chosen !== null && !runs.has(chosen)) [chosen, isPinned] = [null, false];
    if (!runs.size) Welcome.hint($("hint"));
    onHash();
    ask();
  }

  /* The address of a run is that of the page, # and its id: what an answer holds as fot.id. */
  function onHash() {
    if (runs.has(location.hash.slice(1))) choose(location.hash.slice(1), true);
  }

  function onDelta(event) {
    const told = JSON.parse(event.data);
    for (const id of told.gone) {
      runs.delete(id);
      dropCard(id);
      if (chosen === id) [chosen, isPinned] = [null, false];
    }
    for (const run of told.runs) {
      const known = runs.get(run.id);
      if (known) update(known, run);
      else fetchRun(run.id);
      dirty.add(run.id);
    }
    ask();
  }

  async function fetchRun(id) {
    const answer = await fetch(`/live/runs/${encodeURIComponent(id)}`);
    if (!answer.ok) return;
    const told = await answer.json();
    runs.set(id, { ...told, lanes: told.lanes.map(laneOf) });
    dirty.add(id);
    ask();
  }

  function connect(wait) {
    source = new EventSource("/live/events");
    source.addEventListener("open", () => link("on", "live"));
    source.addEventListener("snapshot", onSnapshot);
    source.addEventListener("delta", onDelta);
    source.addEventListener("error", () => {
      link("off", "reconnecting");
      if (source.readyState !== EventSource.CLOSED) return;
      fetch("/", { method: "HEAD" }).then((told) => { if (told.status === 401) location.reload(); }, () => {}); // the key, once more
      setTimeout(() => connect(Math.min(wait * 2, 15000)), wait);
    });
  }

  function link(state, text) {
    if ($("link").textContent === text) return;
    $("link").dataset.state = state;
    $("link").textContent = text;
  }

  // --- what is drawn, once per frame

  function ask() {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => { isAsked = false; draw(); });
  }

  function draw() {
    if (!isPinned) choose([...runs.keys()].pop() ?? null, false);
    const isChosenDirty = dirty.has(chosen);
    for (const id of dirty) stale.add(id);
    dirty.clear();
    drawCards();
    drawCounts();
    $("empty").hidden = runs.size > 0;
    const isHidden = chosen === null || !runs.has(chosen);
    $("run").hidden = isHidden;
    if (isChosenDirty && runs.has(chosen)) drawRun(runs.get(chosen));
  }

  function drawCounts() {
    const counts = {};
    for (const run of runs.values()) counts[run.state] = (counts[run.state] || 0) + 1;
    const text = Object.entries(counts).map(([state, count]) => `${count} ${state}`).join(", ");
    if ($("counts").textContent !== text) $("counts").textContent = text;
  }

  /* A few cards a frame, those in sight only, none too often: fifty runs must not hold up the one that is looked at. */
  function drawCards() {
    const now = performance.now();
    let left = CARDS_A_FRAME;
    for (const id of stale) {
      const run = runs.get(id);
      if (run && !cards.has(id)) addCard(id);
      const card = cards.get(id);
      if (run && !card.isSeen) continue;
      if (run && run.state === "running" && now - card.drawnAt < CARD_MS && id !== chosen) continue;
      if (run && left === 0) continue;
      stale.delete(id);
      if (!run) continue;
      left -= 1;
      card.drawnAt = now;
      drawCard(run, card);
    }
    if (stale.size && !later) later = setTimeout(() => { later = 0; ask(); }, left === 0 ? 30 : CARD_MS / 2);
  }

  function drawCard(run, card) {
    card.name.textContent = run.answer ?? (run.state === "queued" ? "waiting" : "…");
    card.said.textContent = run.saved ? `${run.state}, ${Math.round(run.saved * 100)}% saved` : `${run.state}, k ${run.k}`;
    card.question.textContent = run.question || run.model;
    card.button.setAttribute("aria-pressed", String(run.id === chosen));
    Funnel.draw(card.canvas, run, { mini: true, order: "tokens" });
  }

  function addCard(id) {
    const canvas = make("canvas", { ariaHidden: "true" });
    const [name, said, question] = ["name", "said", "question"].map((className) => make("span", { className }));
    const button = make("button", { type: "button" }, canvas, name, said, question);
    button.addEventListener("click", () => { choose(id, true); $("detail").scrollIntoView({ block: "nearest" }); });
    const item = make("li", {}, button);
    $("runs").prepend(item);
    cards.set(id, { item, button, canvas, name, said, question, isSeen: false, drawnAt: -Infinity });
    item.dataset.run = id;
    sight.observe(item);
  }

  function dropCard(id) {
    if (cards.has(id)) sight.unobserve(cards.get(id).item);
    cards.get(id)?.item.remove();
    cards.delete(id);
  }

  function choose(id, isByReader) {
    isPinned = isPinned || isByReader;
    if (id === chosen) return;
    for (const each of [chosen, id]) {
      if (each === null) continue;
      dirty.add(each);
      cards.get(each)?.button.setAttribute("aria-pressed", String(each === id));
    }
    chosen = id;
    if (isByReader) history.replaceState(null, "", `#${id}`);
    if (isByReader) showCard(id);
    closeLane();
    ask();
  }

  /* Its card in the middle of the list, which lies across on a phone; the page itself stays where it is. */
  function showCard(id) {
    const [list, item] = [$("runs"), cards.get(id)?.item];
    if (!item) return;
    const [around, own] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
    list.scrollBy(own.left - around.left - (around.width - own.width) / 2, own.top - around.top - (around.height - own.height) / 2);
  }

  function drawRun(run) {
    $("title").textContent = titleOf(run);
    $("about").textContent = [run.state + (run.why ? ` (${run.why})` : ""), run.model, run.policy, run.id].filter(Boolean).join(" · ");
    $("question").textContent = run.question;
    drawFigures(run);
    drawLegend(run);
    drawFunnel(run);
    drawVotes(run);
    if ($("rows").closest("details").open) drawRows(run);
  }

  function titleOf(run) {
    if (run.state === "queued") return "Waiting for room";
    if (run.state === "running") return run.answer === null ? "No vote yet" : `Leading: ${run.answer}`;
    return run.answer === null ? "No answer" : `Answer: ${run.answer}`;
  }

  function drawFigures(run) {
    const counts = Funnel.tally(run);
    const figures = [
      ["rollouts", run.k, counts.running ? `${counts.running} running` : ""],
      ["banked", counts.banked || 0, ""],
      ["pruned", counts.pruned || 0, ""],
      ["finished", counts.finished || 0, ""],
      ["tokens", number(tokensOf(run)), run.result ? `${number(run.result.usage.overshoot_tokens)} overshoot` : ""],
      ["saved", ...savedOf(run)],
      ["time", `${run.seconds.toFixed(1)} s`, ""],
    ];
    $("figures").replaceChildren(...figures.map(([name, value, more]) =>
      make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }, ...(more ? [make("small", { textContent: more })] : [])))));
  }

  /* What was saved against running all to their end, which is an estimate where rollouts were stopped. */
  function savedOf(run) {
    if (run.saved === null) return ["–", run.result ? "not known" : "not known yet"];
    const percent = (part) => `${Math.round(part * 100)}%`;
    if (!run.result) return [`≈ ${percent(run.saved)}`, "of tokens, so far"];
    const about = run.result.savings.basis.startsWith("estimated") ? "≈ " : "";
    return [about + percent(run.saved), `of tokens, ${percent(run.result.savings.attention)} of attention`];
  }

  function drawFunnel(run) {
    const canvas = $("funnel");
    const [legible, roomy] = [9.2, 13].map((pitch) => 46 + run.lanes.length * pitch); // below 9 a lane shows no answer
    const height = `${Math.max(180, Math.min(roomy, Math.max(420, window.innerHeight * 0.62, Math.min(legible, 900))))}px`;
    if (canvas.style.height !== height) canvas.style.height = height;
    layout = Funnel.draw(canvas, run, { selected: lane, order: $("order").value });
    const most = `thickest: ${layout.tense} or more markers per 1,000 characters`;
    if ($("most").textContent !== most) $("most").textContent = most;
    const words = Funnel.summary(run);
    if (canvas.getAttribute("aria-label") !== words) canvas.setAttribute("aria-label", words);
  }

  function drawVotes(run) {
    const votes = Object.entries(run.votes).sort((a, b) => b[1] - a[1]);
    const all = votes.reduce((sum, [, count]) => sum + count, 0);
    const items = votes.slice(0, 12).map(([answer, count]) => {
      const fill = make("div", { className: "fill" });
      fill.style.width = `${(100 * count) / all}%`;
      const leads = answer === run.answer;
      return make("li", { className: leads ? "leads" : "" },
        make("span", { className: "answer", textContent: (leads ? "★ " : "") + answer, title: answer }),
        make("span", { className: "count", textContent: Number(count.toFixed(2)) }),
        make("div", { className: "track" }, fill));
    });
    const answered = run.lanes.filter((each) => each.answer !== null && ["finished", "banked"].includes(each.state)).length;
    if (run.state === "running" && Number.isInteger(all) && answered > all) {
      items.push(make("li", { className: "none", textContent: `${answered - all} more answered, soon to be counted` }));
    }
    if (votes.length > 12) items.push(make("li", { className: "none", textContent: `and ${votes.length - 12} more` }));
    $("votes").replaceChildren(...(items.length ? items : [make("li", { className: "none", textContent: "Nobody has voted yet." })]));
  }

  function drawRows(run) {
    $("rows").replaceChildren(...run.lanes.map((each, i) => {
      const open = make("button", { type: "button", textContent: "read", ariaLabel: `read rollout ${i}` });
      open.addEventListener("click", () => openLane(i));
      const cells = [i, each.state, number(each.tokens), each.density.toFixed(2), each.answer ?? ""];
      return make("tr", {}, ...cells.map((value) => make("td", { textContent: value })), make("td", {}, open));
    }));
  }

  // --- one lane's text

  function select(next) {
    lane = next;
    if (runs.has(chosen)) drawFunnel(runs.get(chosen));
  }

  function openLane(next) {
    select(next);
    $("lane").hidden = false;
    readLane(true);
  }

  function closeLane() {
    clearTimeout(textTimer);
    lane = -1;
    $("lane").hidden = true;
    $("text").textContent = "";
  }

  async function readLane(isFirst) {
    clearTimeout(textTimer);
    const [id, which, run] = [chosen, lane, runs.get(chosen)];
    if (!run || which < 0) return;
    const each = run.lanes[which];
    $("lane-title").textContent = `Rollout ${which}: ${each.state}, ${number(each.tokens)} tokens${each.answer === null ? "" : `, answers ${each.answer}`}`;
    const answer = await fetch(`/live/runs/${encodeURIComponent(id)}/lanes/${which}`);
    if (id !== chosen || which !== lane) return;
    const told = answer.ok ? await answer.json() : { text: "This text is not kept.", decided: Infinity, markers: [] };
    const characters = [...told.text]; // as the server counts them
    const after = characters.slice(told.decided).join("");
    $("text").replaceChildren(...marked(characters.slice(0, told.decided).join(""), told.markers),
      ...(after ? [make("span", { className: "after", textContent: after })] : []));
    $("note").textContent = `Marked is what counts as hesitation.${after ? " What is pale came after the decision, until the server behind had stopped: it counts for nothing." : ""}`;
    if (isFirst) $("lane-title").focus();
    if (run.state === "running") textTimer = setTimeout(() => readLane(false), 1000);
  }

  /* The text with its hesitation marked; nothing that a model wrote is read as markup. */
  function marked(text, markers) {
    const longestFirst = [...markers].sort((a, b) => b.length - a.length);
    const pattern = longestFirst.map((marker) => marker.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|") || "$^";
    return text.split(new RegExp(`(${pattern})`)).map((piece, i) => (i % 2 ? make("mark", { textContent: piece }) : piece));
  }

  function onKey(event) {
    const run = runs.get(chosen);
    if (!run || !layout) return;
    const row = layout.order.indexOf(lane);
    const last = run.lanes.length - 1;
    const rows = { ArrowDown: Math.min(row + 1, last), ArrowUp: Math.max(row - 1, 0), Home: 0, End: last };
    if (event.key in rows) select(layout.order[rows[event.key]]);
    else if (event.key === "Enter" && lane >= 0) openLane(lane);
    else return;
    event.preventDefault();
    if (lane >= 0) $("keys").textContent = `Rollout ${lane}: ${run.lanes[lane].state}, ${number(run.lanes[lane].tokens)} tokens. Enter reads it.`;
  }

  // --- the page itself

  const THEMES = ["auto", "light", "dark"];

  function setTheme(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    $("theme").textContent = `◐ ${theme}`;
    $("theme").setAttribute("aria-label", `theme: ◐ ${theme}`);
    try { localStorage.setItem("fot-theme", theme); } catch { /* a browser that keeps nothing */ }
    redraw();
  }

  function redraw() {
    for (const id of runs.keys()) dirty.add(id);
    delete $("legend").dataset.states;
    Welcome.draw($("sample"));
    Funnel.draw($("logo"), { lanes: [4, 9, 3, 6].map((tokens, i) => ({ tokens, state: "finished", density: i * 4, answer: null })) }, { mini: true });
    ask();
  }

  function drawLegend(run) {
    const states = Object.keys(STATES).filter((state) => run.lanes.some((each) => each.state === state));
    if ($("legend").dataset.states === states.join()) return;
    $("legend").dataset.states = states.join();
    const items = states.map((state) => [make("canvas", { ariaHidden: "true" }), state]);
    const scale = make("canvas", { className: "scale", ariaHidden: "true" });
    $("legend").replaceChildren(
      make("li", { className: "shades" }, "calm", scale, "hesitating",
        make("span", { id: "most", className: "most", textContent: $("most")?.textContent ?? "" })),
      ...items.map(([canvas, state]) => make("li", {}, canvas, make("span", {}, make("b", { textContent: state }), ` ${STATES[state]}`))));
    for (const [canvas, state] of items) Funnel.mark(canvas, state);
    Funnel.scale(scale);
  }

  $("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || "auto";
    setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
  });
  $("order").addEventListener("change", () => { if (runs.has(chosen)) drawFunnel(runs.get(chosen)); });
  $("close").addEventListener("click", () => { const at = lane; closeLane(); select(at); $("funnel").focus(); });
  $("funnel").addEventListener("click", (event) => {
    const next = layout ? layout.laneAt(event.offsetY) : -1;
    if (next >= 0) openLane(next);
  });
  $("funnel").addEventListener("keydown", onKey);
  $("rows").closest("details").addEventListener("toggle", () => { if (runs.has(chosen)) drawRows(runs.get(chosen)); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("lane").hidden) $("close").click(); });
  window.addEventListener("resize", redraw);
  window.addEventListener("hashchange", onHash);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let kept = "auto";
  try { kept = localStorage.getItem("fot-theme") || "auto"; } catch { /* a browser that keeps nothing */ }
  setTheme(THEMES.includes(kept) ? kept : "auto");
  connect(1000);
})();
