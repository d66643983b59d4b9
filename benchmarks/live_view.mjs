// For live_view.py: node live_view.mjs URL SECONDS. Prints how long frames took while the page was told of all runs.
import { createRequire } from "node:module";

const { chromium } = createRequire(process.env.FOT_BROWSER_MODULES + "/")("playwright-core");
const [url, seconds] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.FOT_BROWSER_CHROMIUM, args: ["--no-sandbox"] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
await page.goto(url);
await page.waitForFunction(() => document.querySelectorAll("#runs li").length > 1, null, { timeout: 60000 });
await page.waitForTimeout(2000);
const seen = await page.evaluate((forSeconds) => new Promise((done) => {
  const frames = [], tasks = [];
  new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
  const began = performance.now();
  let last = began;
  const next = (now) => {
    frames.push(now - last);
    last = now;
    if (now - began < forSeconds * 1000) return requestAnimationFrame(next);
    frames.sort((a, b) => a - b);
    const at = (part) => Number(frames[Math.floor((frames.length - 1) * part)].toFixed(1));
    const lanes = document.querySelectorAll("#runs li").length;
    return done({
      runs: lanes, frames: frames.length, frame_ms: { median: at(0.5), p95: at(0.95), p99: at(0.99), most: at(1) },
      tasks_over_50_ms: tasks.length, longest_task_ms: Math.round(Math.max(0, ...tasks)),
    });
  };
  requestAnimationFrame(next);
}), Number(seconds));
if (process.env.FOT_BROWSER_FOLDER) await page.screenshot({ path: `${process.env.FOT_BROWSER_FOLDER}/many.png` });
console.log(JSON.stringify(seen));
await browser.close();
