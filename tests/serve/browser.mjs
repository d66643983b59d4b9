// Watches the live view in a real browser, for test_browser.py: node browser.mjs URL FOLDER [again]. Prints what it saw as
// JSON. With `again` it watches how the server goes and comes back.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(process.env.FOT_BROWSER_MODULES + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [url, folder, what] = process.argv.slice(2);
const seen = { errors: [], outside: [], violations: {}, frames: null };

const browser = await chromium.launch({ executablePath: process.env.FOT_BROWSER_CHROMIUM, args: ["--no-sandbox"] });
// The checker itself is not a script of the page's; everything else is under the page's own policy.
const open = async (options) => {
  const page = await (await browser.newContext(options)).newPage();
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("dialog", (dialog) => { seen.errors.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("console", (told) => { if (told.type() === "error") seen.errors.push(told.text()); });
  page.on("request", (asked) => { if (!asked.url().startsWith(url)) seen.outside.push(asked.url()); });
  await page.goto(url);
  return page;
};
const check = async (page, name) => {
  const found = await page.evaluate(async (source) => {
    new Function(source)();
    const result = await window.axe.run(document, { resultTypes: ["violations"] });
    return result.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.target.join(" ")).join(", ")}`);
  }, axe).catch((error) => [`axe did not run: ${error}`]);
  seen.violations[name] = found;
};

const views = { light: { colorScheme: "light" }, dark: { colorScheme: "dark" } };
const size = { viewport: { width: 1280, height: 900 } };
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true, colorScheme: "light" };
const linked = (page, state) => page.waitForFunction((wanted) => document.querySelector("#link").textContent === wanted, state, { timeout: 60000 });

async function again() {
  const page = await open({ ...size, ...views.light });
  await linked(page, "live");
  console.error("ready");
  await page.waitForFunction(() => document.querySelectorAll("#runs li").length === 1, null, { timeout: 60000 });
  seen.before = await page.textContent("#about");
  console.error("go");
  await linked(page, "reconnecting");
  console.error("come");
  await linked(page, "live");
  await page.waitForFunction((before) => document.querySelector("#about").textContent.startsWith("done") && document.querySelector("#about").textContent !== before, seen.before, { timeout: 60000 });
  seen.after = await page.textContent("#about");
  seen.runs = await page.locator("#runs li").count();
  seen.errors = seen.errors.filter((told) => !told.includes("ERR_")); // that nobody answered is what it had to see
}

async function watch() {
  const page = await open({ ...size, ...views.light, bypassCSP: true });
  await page.waitForFunction(() => document.querySelector("#hint").textContent.includes("curl"));
  seen.hint = await page.textContent("#hint");
  await page.screenshot({ path: `${folder}/empty.png` });
  await check(page, "empty");
  console.error("ready");
  await page.waitForFunction(() => document.querySelector("#votes .leads"), null, { timeout: 60000 });
  seen.before = await page.textContent("#about");
  await page.screenshot({ path: `${folder}/running.png` });
  await check(page, "running");
  await page.waitForFunction(() => document.querySelector("#about").textContent.startsWith("done"), null, { timeout: 90000 });
  seen.title = await page.textContent("#title");
  seen.label = await page.getAttribute("#funnel", "aria-label");
  await page.focus("#funnel");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#text").textContent.length > 10);
  seen.text = await page.textContent("#text");
  await page.keyboard.press("Escape");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#text mark");
  seen.marked = await page.textContent("#text mark");
  seen.focus = await page.evaluate(() => document.activeElement.id);
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: `${folder}/light.png`, fullPage: true });
  await check(page, "light");
  await page.keyboard.press("Escape");
  seen.closed = await page.isHidden("#lane");
  await page.click("details summary");
  await check(page, "table");
  const dark = await open({ ...size, ...views.dark, bypassCSP: true });
  await dark.waitForSelector("#run:not([hidden])");
  await dark.selectOption("#order", "tokens");
  await dark.screenshot({ path: `${folder}/dark.png`, fullPage: true });
  await check(dark, "dark");
  const small = await open({ ...phone, bypassCSP: true });
  await small.waitForSelector("#run:not([hidden])");
  await small.screenshot({ path: `${folder}/phone.png`, fullPage: true });
  seen.wider = await small.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  await check(small, "phone");
  const strict = await open({ ...size, ...views.light }); // under the page's own policy, as readers have it
  await strict.waitForSelector("#run:not([hidden])");
  seen.drawn = await strict.evaluate(() => {
    const canvas = document.querySelector("#funnel");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return new Set(Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 3).join())).size;
  });
}

await (what === "again" ? again() : watch());
console.log(JSON.stringify(seen));
await browser.close();
