// What a reader of a report does, offline: node browser.mjs PAGE FOLDER. Prints one JSON object.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [page_, folder] = process.argv.slice(2);
const modules = process.env.FOT_BROWSER_MODULES;
const require = createRequire(join(modules, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(join(modules, "axe-core", "axe.min.js"), "utf8");

const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: process.env.FOT_BROWSER_CHROMIUM, args });
const context = await browser.newContext({ offline: true, viewport: { width: 1100, height: 1000 } });
const page = await context.newPage();
const seen = { requests: [], errors: [], violations: {}, overflow: {}, orders: {}, found: {} };
page.on("request", (request) => seen.requests.push(request.url()));
page.on("pageerror", (error) => seen.errors.push(String(error)));
page.on("console", (said) => said.type() === "error" && seen.errors.push(said.text()));

const rows = () => page.$$eval("#problems tbody tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
const look = async (name) => {
  await page.screenshot({ path: join(folder, `report-${name}.png`), fullPage: true });
  seen.overflow[name] = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  seen.violations[name] = violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
};

await page.goto(`file://${page_}`);
for (const order of ["won", "saved", "hard", "pool"]) {
  await page.selectOption("#order", order);
  seen.orders[order] = await rows();
}
for (const word of ["only the funnel", "both right", "no such thing"]) {
  await page.fill("#search", word);
  seen.found[word] = [(await rows()).length, await page.textContent("#found")];
}
await page.fill("#search", "");
await page.selectOption("#order", "won");
seen.hidden = await page.isHidden("#problem");
await page.click("#problems tbody tr:first-child");
seen.shown = [await page.textContent("#problem h3"), await page.textContent("#problem p")];
seen.lanes = await page.$eval("#problem canvas.funnel", (canvas) => canvas.getAttribute("aria-label"));
seen.inked = await page.$eval("#problem canvas.funnel", (canvas) =>
  new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size);
seen.votes = await page.$$eval("#problem .votes table", (all) => all.map((table) => table.textContent));
await page.click("#problem details:nth-of-type(2) summary");
seen.text = await page.$eval("#problem details:nth-of-type(2) pre", (pre) => pre.textContent);
await look("light");
await page.focus("#problems tbody tr:nth-child(2)");
await page.keyboard.press("Enter");
seen.keyed = await page.textContent("#problem h3");
await page.emulateMedia({ colorScheme: "dark" });
await look("dark");
await page.setViewportSize({ width: 390, height: 800 });
await look("phone");
await browser.close();
console.log(JSON.stringify(seen));
