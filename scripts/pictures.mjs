// For pictures.py: node pictures.mjs URL FOLDER. Takes the chosen run in light and in dark.
import { createRequire } from "node:module";

const { chromium } = createRequire(process.env.FOT_BROWSER_MODULES + "/")("playwright-core");
const [url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.FOT_BROWSER_CHROMIUM, args: ["--no-sandbox"] });
for (const colorScheme of ["light", "dark"]) {
  const context = await browser.newContext({ viewport: { width: 1120, height: 860 }, colorScheme });
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForSelector("#run:not([hidden])");
  await page.selectOption("#order", "tokens");
  await page.waitForTimeout(1500); // the small funnels come a few at a time
  await page.screenshot({ path: `${folder}/live-view-${colorScheme}.png`, fullPage: true });
}
await browser.close();
