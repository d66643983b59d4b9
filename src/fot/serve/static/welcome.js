/* What the page shows before the first run: a line to paste that makes one, and a funnel to learn to read them by. */
"use strict";

const Welcome = (() => {
  const LANES = [ // tokens, density, state of rollouts that never were
    [15200, 2, "finished"], [12800, 3, "finished"], [10000, 4, "banked"], [10000, 5, "banked"], [10000, 10, "pruned"],
    [10000, 11, "pruned"], [6000, 1, "banked"], [6000, 2, "banked"], [6000, 13, "pruned"], [6000, 15, "pruned"],
    [6000, 17, "pruned"], [4100, 1, "banked"],
  ];

  function draw(canvas) {
    const lanes = LANES.map(([tokens, density, state]) => ({ tokens, density, state, answer: state === "pruned" ? null : "42" }));
    Funnel.draw(canvas, { lanes, checkpoints: [6000, 10000], answer: "42" });
  }

  /* With the name of a model that there is, and a key where one is needed. */
  async function hint(element) {
    const answer = await fetch("/v1/models");
    const model = (answer.ok && (await answer.json()).data[0]?.id) || "…";
    const messages = [{ role: "user", content: "What is 6 times 7? Put your answer in \\boxed{}." }];
    const headers = ["content-type: application/json", ...("keyed" in document.body.dataset ? ["authorization: Bearer $KEY"] : [])];
    const flags = headers.map((header) => `  -H "${header}" \\\n`).join("");
    element.textContent = `curl ${location.origin}/v1/chat/completions \\\n${flags}  -d '${JSON.stringify({ model, messages })}'`;
  }

  return { draw, hint };
})();
