/* Draws one problem as a funnel: a lane for every rollout, growing to the right in tokens.
 *
 *   const layout = Funnel.draw(canvas, problem, options);
 *   Funnel.mark(canvas, "banked");                  one mark, for a legend
 *   Funnel.summary(problem);                        the same in words, for those who cannot see it
 *
 * problem = {
 *   lanes: [{tokens, state, density, answer, history: [[tokens, density], ...], full, isRight}, ...],
 *   checkpoints: [6000, 10000],    lines across the lanes
 *   answer: "42" or null           the answer that leads or has won
 * }
 * state is waiting, running, finished, banked, pruned, cancelled or failed. history may be missing or empty. A recorded
 * rollout that was stopped has in `full` the tokens that it ran on to, drawn pale; answers stand behind them, with a tick
 * where isRight.
 * options = {selected: lane or -1, order: "number" | "tokens", mini: true for a thumbnail, dark: true | false}
 * layout.laneAt(y) is the lane drawn at that height in CSS pixels, or -1; layout.order is the lanes from top to bottom;
 * layout.tense is the density, in markers per 1,000 characters, that is drawn as the most.
 *
 * Hesitation shows twice: a lane turns from blue to orange and grows thicker. Every end has a mark of its own shape, so
 * that nothing depends on colour. The size is the canvas's own in CSS. Nothing else on the page is touched or needed.
 */
"use strict";

const Funnel = (() => {
  const TENSE = [12, 24, 48, 96]; // markers per 1,000 characters that are drawn as the most: what nearly all lanes stay below

  const PALETTES = {
    light: {
      ink: "#1d2433", faint: "#5b6475", grid: "#d5dae4", line: "#7a8497", select: "#e4ebf7", track: "#eef1f6",
      scale: [[43, 108, 176], [120, 130, 160], [222, 140, 40], [190, 62, 18]],
      finished: "#1d2433", banked: "#0b6e4f", pruned: "#b02a1c", cancelled: "#5b6475", failed: "#8a1c7c", win: "#0b6e4f",
    },
    dark: {
      ink: "#e8ecf4", faint: "#9aa5b8", grid: "#2d3546", line: "#78849a", select: "#26324a", track: "#1a2130",
      scale: [[94, 164, 232], [150, 160, 190], [240, 170, 80], [255, 112, 67]],
      finished: "#e8ecf4", banked: "#4fd1a5", pruned: "#ff8a75", cancelled: "#9aa5b8", failed: "#e08ad6", win: "#4fd1a5",
    },
  };

  function isDark(canvas) {
    const told = getComputedStyle(canvas).color.match(/[\d.]+/g);
    return told ? Number(told[0]) * 0.3 + Number(told[1]) * 0.59 + Number(told[2]) * 0.11 > 140 : false;
  }

  function paletteOf(canvas, options) {
    const dark = options && "dark" in options ? options.dark : isDark(canvas);
    return dark ? PALETTES.dark : PALETTES.light;
  }

  function tenseOf(lanes) {
    const densities = lanes.map((lane) => lane.density || 0).sort((a, b) => a - b);
    const high = densities[Math.floor((densities.length - 1) * 0.9)] || 0;
    return TENSE.find((most) => most >= high) || TENSE[TENSE.length - 1];
  }

  const STEPS = 48; // shades of a scale; each is mixed once

  function colour(palette, tension) {
    if (!palette.shades) palette.shades = Array.from({ length: STEPS + 1 }, (_, i) => mixed(palette.scale, i / STEPS));
    return palette.shades[Math.round(tension * STEPS)];
  }

  function mixed(scale, part) {
    const at = part * (scale.length - 1);
    const low = Math.min(Math.floor(at), scale.length - 2);
    const values = scale[low].map((value, i) => Math.round(value + (scale[low + 1][i] - value) * (at - low)));
    return `rgb(${values.join(",")})`;
  }

  /* The canvas in CSS pixels, sharp on every screen. */
  function prepare(canvas) {
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    const width = canvas.clientWidth || 300;
    const height = canvas.clientHeight || 150;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return { pen, width, height };
  }

  const SHAPES = {
    finished: (pen, x, y, r) => { pen.arc(x, y, r, 0, 2 * Math.PI); pen.fill(); },
    banked: (pen, x, y, r) => {
      pen.moveTo(x, y - r * 1.3); pen.lineTo(x + r * 1.3, y); pen.lineTo(x, y + r * 1.3); pen.lineTo(x - r * 1.3, y);
      pen.closePath(); pen.fill();
    },
    pruned: (pen, x, y, r) => {
      pen.moveTo(x - r, y - r); pen.lineTo(x + r, y + r); pen.moveTo(x + r, y - r); pen.lineTo(x - r, y + r); pen.stroke();
    },
    cancelled: (pen, x, y, r) => {
      pen.moveTo(x - r * 0.6, y - r * 1.1); pen.lineTo(x - r * 0.6, y + r * 1.1);
      pen.moveTo(x + r * 0.6, y - r * 1.1); pen.lineTo(x + r * 0.6, y + r * 1.1); pen.stroke();
    },
    failed: (pen, x, y, r) => {
      pen.moveTo(x, y - r * 1.2); pen.lineTo(x + r * 1.2, y + r); pen.lineTo(x - r * 1.2, y + r); pen.closePath(); pen.stroke();
    },
    running: (pen, x, y, r) => {
      pen.moveTo(x - r, y - r); pen.lineTo(x + r * 0.6, y); pen.lineTo(x - r, y + r); pen.stroke();
    },
    waiting: (pen, x, y, r) => { pen.arc(x, y, r * 0.7, 0, 2 * Math.PI); pen.stroke(); },
  };

  function drawMark(pen, palette, state, x, y, r) {
    const shape = SHAPES[state] || SHAPES.waiting;
    pen.beginPath();
    pen.fillStyle = pen.strokeStyle = palette[state] || palette.faint;
    pen.lineWidth = Math.max(1.4, r * 0.45);
    pen.lineCap = "round";
    shape(pen, x, y, r);
  }

  function ordered(lanes, order) {
    const numbers = lanes.map((_, i) => i);
    return order === "tokens" ? numbers.sort((a, b) => lanes[b].tokens - lanes[a].tokens || a - b) : numbers;
  }

  function shortTokens(tokens) {
    if (tokens < 1000) return String(tokens);
    return `${(tokens / 1000).toFixed(tokens % 1000 && tokens < 10000 ? 1 : 0)}k`;
  }

  function niceStep(most) {
    const rough = most / 5;
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= rough) || power * 10;
  }

  /* Where everything goes. */
  function plan(problem, width, height, mini) {
    const lanes = problem.lanes;
    const checkpoints = problem.checkpoints || [];
    const reached = lanes.reduce((most, lane) => Math.max(most, lane.full || 0, lane.tokens), 0);
    const next = checkpoints.find((tokens) => tokens > reached);
    const most = Math.max(reached * 1.02, next && next < reached * 1.6 ? next * 1.05 : 0, 10);
    const left = mini ? 2 : 34;
    const right = mini ? 8 : Math.min(110, width * 0.2);
    const top = mini ? 2 : 22;
    const bottom = mini ? 2 : 24;
    const pitch = (height - top - bottom) / Math.max(lanes.length, 1);
    const scale = (width - left - right) / most;
    return { left, right, top, bottom, pitch, most, reached, tense: tenseOf(lanes), x: (tokens) => left + tokens * scale };
  }

  function drawGrid(pen, palette, at, problem, width, height) {
    const step = niceStep(at.most);
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.lineWidth = 1;
    for (let tokens = 0; tokens <= at.most; tokens += step) {
      const x = Math.round(at.x(tokens)) + 0.5;
      pen.strokeStyle = palette.grid;
      pen.beginPath(); pen.moveTo(x, at.top); pen.lineTo(x, height - at.bottom); pen.stroke();
      pen.fillStyle = palette.faint;
      pen.textBaseline = "top";
      pen.fillText(shortTokens(tokens) + (tokens ? "" : " tokens"), Math.max(x, tokens ? 0 : 30), height - at.bottom + 7);
    }
  }

  function drawCheckpoints(pen, palette, at, problem, width, height, mini) {
    let labelled = -Infinity;
    for (const tokens of problem.checkpoints || []) {
      if (tokens > at.most) continue;
      const x = Math.round(at.x(tokens)) + 0.5;
      pen.strokeStyle = palette.line;
      pen.lineWidth = 1;
      pen.setLineDash(mini ? [2, 2] : [5, 4]);
      pen.beginPath(); pen.moveTo(x, at.top - (mini ? 0 : 5)); pen.lineTo(x, height - at.bottom); pen.stroke();
      pen.setLineDash([]);
      if (mini || x - labelled < 30) continue;
      labelled = x;
      pen.fillStyle = palette.faint;
      pen.textAlign = "center";
      pen.textBaseline = "alphabetic";
      pen.fillText(shortTokens(tokens), x, at.top - 9);
    }
    if (labelled === -Infinity) return;
    const word = problem.checkpoints.length > 1 ? "checkpoints" : "checkpoint";
    if (labelled + 24 + pen.measureText(word).width > width) return;
    pen.textAlign = "left";
    pen.fillText(word, labelled + 24, at.top - 9);
  }

  /* One lane, in pieces of even hesitation. */
  function drawLane(pen, palette, at, lane, y, mini) {
    const full = Math.max(1.5, Math.min(at.pitch * (mini ? 0.9 : 0.72), 14));
    const hasHistory = lane.history && lane.history.length && !mini; // a thumbnail shows how it is, not how it came
    const points = hasHistory ? lane.history : [[lane.tokens, lane.density || 0]];
    let from = 0;
    let shown = null; // what is drawn from `from` on, until the colour changes
    const flush = (to) => {
      if (shown === null || to <= from) return;
      pen.fillStyle = shown;
      const thick = mini ? full : full * (0.4 + 0.6 * tension);
      pen.fillRect(at.x(from), y - thick / 2, Math.max(at.x(to) - at.x(from), 0.5) + 0.4, thick);
      from = to;
    };
    let tension = 0;
    let reached = 0;
    for (const [tokens, next] of points) {
      const stepped = Math.round(Math.min(next / at.tense, 1) * STEPS) / STEPS;
      if (shown !== null && stepped !== tension) flush(reached);
      tension = stepped;
      shown = colour(palette, tension);
      reached = Math.min(tokens, lane.tokens);
    }
    flush(lane.tokens);
    if (!(lane.full > lane.tokens)) return;
    const x = at.x(lane.tokens) + (mini ? 1 : 2 * markSize(at) + 7);
    pen.fillStyle = palette.grid;
    pen.fillRect(x, y - full * 0.2, Math.max(at.x(lane.full) - x, 0), full * 0.4);
  }

  const markSize = (at) => Math.max(2, Math.min(at.pitch * 0.32, 5));

  function fitted(pen, text, room) {
    if (pen.measureText(text).width <= room) return text;
    let kept = text.slice(0, 60);
    while (kept.length > 1 && pen.measureText(`${kept}…`).width > room) kept = kept.slice(0, -1);
    return `${kept}…`;
  }

  function clear(pen, palette, x, y, width, height, isSelected) {
    pen.clearRect(x, y - height / 2, width, height);
    if (!isSelected) return;
    pen.fillStyle = palette.select;
    pen.fillRect(x, y - height / 2, width, height);
  }

  function drawEnd(pen, palette, at, problem, lane, y, width, isSelected) {
    const r = markSize(at);
    const x = at.x(lane.tokens) + r + 3;
    drawMark(pen, palette, lane.state, x, y, r);
    const isTold = lane.answer !== null && lane.answer !== undefined && (lane.state !== "pruned" || lane.full);
    if (!isTold || at.pitch < 9) return;
    const from = Math.max(x + r, lane.full ? at.x(lane.full) : 0) + 5;
    const wins = lane.answer === problem.answer;
    pen.font = `${wins ? "600 " : ""}${Math.min(12, at.pitch * 0.95)}px system-ui, sans-serif`;
    const text = fitted(pen, (lane.isRight ? "✓ " : "") + lane.answer, width - from - 3);
    clear(pen, palette, from - 2, y, pen.measureText(text).width + 4, at.pitch, isSelected); // no line through it
    pen.fillStyle = wins ? palette.win : palette.faint;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText(text, from, y + 0.5);
  }

  function drawNumber(pen, palette, at, number, y, every) {
    if (number % every) return;
    pen.font = `${Math.min(11, Math.max(8, at.pitch))}px system-ui, sans-serif`;
    pen.fillStyle = palette.faint;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillText(String(number), at.left - 8, y + 0.5);
  }

  function draw(canvas, problem, options) {
    const { mini = false, selected = -1, order = "number" } = options || {};
    const palette = paletteOf(canvas, options);
    const { pen, width, height } = prepare(canvas);
    const at = plan(problem, width, height, mini);
    const rows = ordered(problem.lanes, order);
    const every = at.pitch >= 9 ? 1 : at.pitch >= 5 ? 4 : 8;
    if (!mini) drawGrid(pen, palette, at, problem, width, height);
    rows.forEach((number, row) => {
      const y = at.top + (row + 0.5) * at.pitch;
      if (number === selected) {
        pen.fillStyle = palette.select;
        pen.fillRect(0, y - at.pitch / 2, width, at.pitch);
      }
      drawLane(pen, palette, at, problem.lanes[number], y, mini);
    });
    drawCheckpoints(pen, palette, at, problem, width, height, mini);
    if (!mini) {
      rows.forEach((number, row) => {
        const y = at.top + (row + 0.5) * at.pitch;
        drawNumber(pen, palette, at, number, y, every);
        drawEnd(pen, palette, at, problem, problem.lanes[number], y, width, number === selected);
      });
    }
    return {
      order: rows,
      tense: at.tense,
      laneAt: (y) => {
        const row = Math.floor((y - at.top) / at.pitch);
        return row >= 0 && row < rows.length ? rows[row] : -1;
      },
    };
  }

  function mark(canvas, state) {
    const { pen, width, height } = prepare(canvas);
    drawMark(pen, paletteOf(canvas), state, width / 2, height / 2, Math.min(width, height) * 0.27);
  }

  /* The scale of hesitation, calm to tense. */
  function scale(canvas) {
    const palette = paletteOf(canvas);
    const { pen, width, height } = prepare(canvas);
    for (let x = 0; x < width; x += 1) {
      const thick = (height - 2) * (0.4 + (0.6 * x) / width);
      pen.fillStyle = colour(palette, x / width);
      pen.fillRect(x, (height - thick) / 2, 1.5, thick);
    }
  }

  function tally(problem) {
    const counts = {};
    for (const lane of problem.lanes) counts[lane.state] = (counts[lane.state] || 0) + 1;
    return counts;
  }

  function summary(problem) {
    const counts = Object.entries(tally(problem)).map(([state, count]) => `${count} ${state}`);
    const tokens = problem.lanes.reduce((sum, lane) => sum + lane.tokens, 0);
    const lead = problem.answer === null || problem.answer === undefined ? "no answer yet" : `answer ${problem.answer}`;
    return `${problem.lanes.length} rollouts: ${counts.join(", ")}; ${tokens} tokens; ${lead}.`;
  }

  return { draw, mark, scale, summary, tally };
})();

if (typeof window !== "undefined") window.Funnel = Funnel;
